package trace

import (
	"encoding/json"
	"time"
)

// A Record is one request of a trace. Exactly one of InputTokens, Text, Messages and Payload says what to send.
type Record struct {
	Number int           // place among the file's data rows, from 0: the row's identity in request ids, shards and records
	Line   int           // line in the file, from 1
	Offset time.Duration // since the trace's first instant, ≥ 0

	InputTokens  int      // length of the prompt to synthesize; 0 when the row brings its own text, messages or payload
	OutputTokens int      // length of the answer to ask for; 0 when the row does not say
	Blocks       []uint64 // prefix-cache blocks of the prompt, at most ceil(InputTokens / block size); nil when the row has none

	Text     string          // text_input: sent as it is
	Messages json.RawMessage // a JSON array: sent as it is
	Tools    json.RawMessage // a JSON array, only beside Messages; nil otherwise
	Payload  json.RawMessage // a JSON object: the request body as it is
	Extra    json.RawMessage // a JSON object merged into the body; nil when absent

	Session string        // rows that share it are turns of one conversation, in file order; "" for none
	Delay   time.Duration // wait after the end of the turn before
}
