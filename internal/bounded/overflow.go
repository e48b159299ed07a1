package bounded

import (
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Other is the label value of all values without an entry, where their sum means something. Elsewhere their series
// are left out.
const Other = "other"

// A Label is a label of /metrics whose values others choose.
type Label string

// Labels; the list is complete.
const (
	Model          Label = "model"           // of a target, by its server
	ReplicaName    Label = "replica_name"    // of an answer, by its header
	RequestedModel Label = "requested_model" // of a row, by its body
	Address        Label = "address"         // of an engine, by DNS
	Rank           Label = "rank"            // of an engine, by its page
	Bound          Label = "le"              // likewise
	ModelName      Label = "model_name"      // likewise
	Device         Label = "gpu"             // with uuid, hostname and the like, by a source of GPUs
)

var all = []Label{Model, ReplicaName, RequestedModel, Address, Rank, Bound, ModelName, Device}

// An Overflow counts values without an entry, and logs the first of each label. A nil one counts nothing.
type Overflow struct {
	total *prometheus.CounterVec
	log   *slog.Logger

	logged sync.Map // labels
}

// NewOverflow registers the series with reg and panics if it is already registered.
func NewOverflow(reg prometheus.Registerer) *Overflow {
	o := &Overflow{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "replayd_label_overflow_total",
			Help: "Times that a label value from outside had no place among the most that the label may have: it was shown as other, or left out.",
		}, []string{"label"}),
		log: slog.New(slog.DiscardHandler),
	}
	for _, l := range all {
		o.total.WithLabelValues(string(l))
	}
	reg.MustRegister(o.total)
	return o
}

// LogTo makes the first value of each label without an entry be logged. It is called before any other method.
func (o *Overflow) LogTo(log *slog.Logger) { o.log = log }

// Add counts n values without an entry.
func (o *Overflow) Add(l Label, n int) {
	if o == nil || n == 0 {
		return
	}
	o.total.WithLabelValues(string(l)).Add(float64(n))
	if _, logged := o.logged.LoadOrStore(l, true); !logged {
		o.log.Warn("a label has too many values: further ones are other, or left out, and counted in replayd_label_overflow_total",
			"label", string(l))
	}
}
