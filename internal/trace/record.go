package trace

import (
	"encoding/json"
	"time"
)

// A Record is one request of a trace. Exactly one of InputTokens, Text, Messages and Payload is set and says what to
// send. Parts, if set, divides InputTokens among messages.
type Record struct {
	Number int           // index among the file's rows, from 0; identifies the row in request ids, shards and records
	Line   int           // line in the file, from 1
	Offset time.Duration // since the start of the trace, ≥ 0

	InputTokens  int      // length of the prompt to synthesize; 0 if the row has its own text, messages or payload
	OutputTokens int      // length of the answer to request; 0 if the row does not say
	Blocks       []uint64 // prefix-cache block ids, at most ceil(InputTokens / block size); nil if the row has none

	Parts []Part // messages to synthesize, in order; their tokens sum to InputTokens; nil: the prompt is one text

	Text     string          // text_input: sent as it is
	Messages json.RawMessage // a JSON array: sent as it is
	Tools    json.RawMessage // a JSON array, only together with Messages; else nil
	Payload  json.RawMessage // a JSON object: the request body, sent as it is
	Extra    json.RawMessage // a JSON object merged into the body; nil when absent

	Session string        // rows with the same Session are turns of one conversation, in file order; "" for none
	Turn    int           // index of the turn in the conversation, from 0; turns given only as history count too
	Delay   time.Duration // wait after the end of the previous turn
	Gap     time.Duration // least time between the due times of the previous turn and this one; 0: none
	Pass    int64         // number of this repetition of the row, from 0, in a loop that holds the trace more than once
}

// A Part is one message of a prompt to synthesize. Its text is the beginning of an endless text that depends only on
// ID, so rows that share a part share its text.
type Part struct {
	Role   string // system, user or assistant
	ID     uint64
	Tokens int // at least 1
}
