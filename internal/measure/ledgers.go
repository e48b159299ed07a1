package measure

// A LedgerLine is what a file of records has of one workload between its records: {"ledger":{…}}.
type LedgerLine struct {
	Time     int64  `json:"time_ns"`  // when it was so; Unix time in ns, like began_ns
	Began    int64  `json:"began_ns"` // when the counts were 0: it tells the runs of one file apart
	Workload string `json:"workload"`
	Target   string `json:"target"`
	Shard    string `json:"shard"` // which of how many: 0/2
	SLO      string `json:"slo"`   // as ParseSLO reads it
	Ledger
}
