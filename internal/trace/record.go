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
	Verbatim bool            // no answer of the server's replaces one in Messages
	Tools    json.RawMessage // a JSON array, only together with Messages; else nil
	Payload  json.RawMessage // a JSON object: the request body, sent as it is
	Extra    json.RawMessage // a JSON object merged into the body; nil when absent

	Model   string            // that the body of Payload names; "": none
	Headers map[string]string // header lines of the request, those of Options.Header; nil: none

	Session string        // rows with the same Session are turns of one conversation, in file order; "" for none
	Turn    int           // index of the turn in the conversation, from 0; turns given only as history count too
	Delay   time.Duration // wait after the end of the previous turn
	Gap     time.Duration // least time between the due times of the previous turn and this one; 0: none
	Pass    int64         // number of this repetition of the row, from 0, in a loop that holds the trace more than once

	Agent    string // which sub-agent of the session sends the row; "": the session's own thread
	After    []Edge // rows of the session that must have ended before; nil: the turn before; empty and not nil: none
	Floating bool   // the row is due only by its After; its Offset is the earliest instant that these allow

	First bool          // no row of the session is read before this one
	Last  bool          // no row of the session is read after this one
	Since time.Duration // least time from the due instant of the session's first row; 0: none
}

// An Edge makes a row wait for a parent: an earlier row of the same session.
type Edge struct {
	Row  int           // the parent's Record.Number
	Wait time.Duration // from the end of the parent's answer, ≥ 0
}

// AddEdge adds an edge to a list that has each parent once, with its longest wait.
func AddEdge(list []Edge, e Edge) []Edge {
	for i := range list {
		if list[i].Row == e.Row {
			list[i].Wait = max(list[i].Wait, e.Wait)
			return list
		}
	}
	return append(list, e)
}

// Shed removes what a row sends, but not its lengths, so that a row that waits for long takes little memory. File.Reread brings it back.
func (r *Record) Shed() {
	r.Blocks, r.Text, r.Messages, r.Tools, r.Payload, r.Extra, r.Headers = nil, "", nil, nil, nil, nil, nil
}

// Shard returns which of so many shards sends the row: all rows of a session have the same one, and others go in turns.
func (r *Record) Shard(of int) int { return int(r.Key() % uint64(of)) }

// Place returns the row's place in a rotation, in a loop and one of so many shards. All rows of a session have the
// same place, rows without a session follow each other, and each loop begins elsewhere.
func (r *Record) Place(shards int, loop int64) uint64 {
	place := r.Key() / uint64(shards)
	if r.Session != "" {
		place = mixed(r.Key()) // like names have like low bits, and a shard's have equal ones
	}
	return place + mixed(uint64(loop)) + uint64(r.Pass)
}

// Key is the same number for all rows of a session; rows without a session differ.
func (r *Record) Key() uint64 {
	if r.Session == "" {
		return uint64(r.Number)
	}
	key := uint64(14695981039346656037) // FNV-1a, 64 bits; hash/fnv would allocate
	for i := range len(r.Session) {
		key = (key ^ uint64(r.Session[i])) * 1099511628211
	}
	return key
}

// mixed is MurmurHash3's finalizer, fmix64: each bit of n changes half of the result's.
func mixed(n uint64) uint64 {
	n = (n ^ n>>33) * 0xff51afd7ed558ccd
	n = (n ^ n>>33) * 0xc4ceb9fe1a85ec53
	return n ^ n>>33
}

// Bytes returns how many bytes a row holds beside its own struct, about.
func (r *Record) Bytes() int {
	headers := 0
	for name, value := range r.Headers {
		headers += len(name) + len(value)
	}
	return headers + len(r.Model) + 16*len(r.After) + len(r.Text) + len(r.Messages) + len(r.Tools) + len(r.Payload) + len(r.Extra) + 8*len(r.Blocks) + 56*len(r.Parts)
}

// A Part is one message of a prompt to synthesize. Behind its blocks its text is the beginning of an endless text that depends only
// on ID, so rows that share a part share its text.
type Part struct {
	Role   string // system, user or assistant
	ID     uint64
	Tokens int      // at least 1
	Blocks []uint64 // ids of the text's first blocks, as in a Record; nil: none
}
