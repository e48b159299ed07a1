package trace

import (
	"encoding/json"
	"time"
)

// A Record is one request of a trace. Exactly one of InputTokens, Text, Messages and Payload says what to send; Parts, where
// there are any, say how the InputTokens are shared between messages.
type Record struct {
	Number int           // place among the file's data rows, from 0: the row's identity in request ids, shards and records
	Line   int           // line in the file, from 1
	Offset time.Duration // since the trace's first instant, ≥ 0

	InputTokens  int      // length of the prompt to synthesize; 0 when the row brings its own text, messages or payload
	OutputTokens int      // length of the answer to ask for; 0 when the row does not say
	Blocks       []uint64 // prefix-cache blocks of the prompt, at most ceil(InputTokens / block size); nil when the row has none

	Parts []Part // messages to synthesize, in order, InputTokens long together; nil: the prompt is one text

	Text     string          // text_input: sent as it is
	Messages json.RawMessage // a JSON array: sent as it is
	Tools    json.RawMessage // a JSON array, only beside Messages; nil otherwise
	Payload  json.RawMessage // a JSON object: the request body as it is
	Extra    json.RawMessage // a JSON object merged into the body; nil when absent

	Session string        // rows that share it are turns of one conversation, in file order; "" for none
	Turn    int           // place in the conversation, from 0; what is given as history counts
	Delay   time.Duration // wait after the end of the turn before
	Gap     time.Duration // least time from when the turn before was due to when this one is; 0: none
	Pass    int64         // which time this row comes round in a loop that holds the trace more than once, from 0
}

// A Part is one message of a prompt that is to be synthesized: the beginning of an endless text that belongs to its ID, so
// that rows which share a part share its text.
type Part struct {
	Role   string // system, user or assistant
	ID     uint64
	Tokens int // at least 1
}
