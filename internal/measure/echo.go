package measure

// An Echo says what became of the header of an answer that later requests of its session send back.
type Echo uint8

// Values of Echo; the list is complete.
const (
	EchoNone     Echo = iota // no header is wanted, or the answer is not of status 2xx or of a session
	EchoKept                 // later requests send the value
	EchoMissing              // the answer does not have the header
	EchoUnusable             // the value is longer than 4 KiB, is not printable ASCII, or there is no memory left for it
	NumEchoes
)

var echoes = [NumEchoes]string{"none", "kept", "missing", "unusable"}

// String returns the name, as in series.
func (e Echo) String() string { return echoes[e] }
