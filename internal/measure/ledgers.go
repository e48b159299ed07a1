package measure

// RecordsVersion is the version of records files. A file with a greater one may mean something else by the same fields, and is refused.
const RecordsVersion = 1

// A LedgerLine is a line of a records file that holds the ledger of one workload: {"ledger":{…}}.
type LedgerLine struct {
	Version  int    `json:"version"`  // RecordsVersion of the writer; 0: from before there was one, and read as 1
	Time     int64  `json:"time_ns"`  // instant of the ledger, in Unix ns like began_ns
	Began    int64  `json:"began_ns"` // instant at which all counts were 0; it tells the runs of a file apart
	Workload string `json:"workload"`
	Target   string `json:"target"`
	Shard    string `json:"shard"` // index/count, such as 0/2
	SLO      string `json:"slo"`   // in the syntax of ParseSLO
	Ledger
}
