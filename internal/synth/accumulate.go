package synth

import (
	"encoding/json"
	"fmt"
	"slices"

	"replayd/internal/trace"
)

// mostHistory bounds the bytes of all texts that Accumulate repeats.
const mostHistory = 1 << 30

// Accumulate makes whole prompts of rows that have only what is new in each turn, as AIPerf reads Mooncake's rows: a later turn
// of a session gets the messages of the turns before and their answers, which stand in for the server's own. The rows are in due
// order, and are changed in place. Rows with messages or a payload are whole, and so is a later turn whose ids begin with
// those of the turn before. A turn after such a one is new text behind it. It returns how many later turns were lengthened, and how
// many were found whole.
func Accumulate(rows []trace.Record) (lengthened, whole int, err error) {
	sessions, history := map[string]*soFar{}, 0
	for i := range rows {
		r := &rows[i]
		if r.Session == "" || r.Messages != nil || r.Payload != nil {
			r.Verbatim = true
			continue
		}
		s := sessions[r.Session]
		if s == nil {
			s = &soFar{texts: r.Text != ""}
			sessions[r.Session] = s
		}
		if s.texts != (r.Text != "") {
			return 0, 0, fmt.Errorf("line %d: want the turns of a session all by length or all with text_input, got both", r.Line)
		}
		isWhole := s.turns > 0 && len(s.blocks) > 0 && len(r.Blocks) >= len(s.blocks) && slices.Equal(r.Blocks[:len(s.blocks)], s.blocks)
		switch s.blocks = r.Blocks; {
		case isWhole:
			whole++
			s.parts, s.tokens = nil, 0 // its prompt has them
		case s.turns > 0:
			lengthened++
		}
		s.turns++
		if isWhole {
			s.addWhole(r)
		} else if s.texts {
			if history += len(s.messages) + len(r.Text); history > mostHistory {
				return 0, 0, fmt.Errorf("line %d: want at most %d bytes of texts with their turns before, got more", r.Line, mostHistory)
			}
			s.addText(r)
		} else if s.addLength(r); r.InputTokens > trace.MaxTokens {
			return 0, 0, fmt.Errorf("line %d: want at most %d tokens with the turns before, got %d", r.Line, trace.MaxTokens, r.InputTokens)
		}
		if r.Last {
			delete(sessions, r.Session)
		}
	}
	return lengthened, whole, nil
}

// soFar is what a session has said so far.
type soFar struct {
	texts    bool // its turns are texts, not lengths
	turns    int
	parts    []trace.Part
	tokens   int // of parts
	messages []byte
	blocks   []uint64 // of the latest turn
}

// addLength makes the row's prompt of the turns before and its own. Later rows append after its parts and never change them.
func (s *soFar) addLength(r *trace.Record) {
	answer := r.OutputTokens
	if answer == 0 {
		answer = max(standInTokens, r.InputTokens/2)
	}
	id := 2 * uint64(r.Number)
	s.parts = append(s.parts, trace.Part{Role: "user", ID: id, Tokens: r.InputTokens, Blocks: r.Blocks})
	s.tokens += r.InputTokens
	r.InputTokens, r.Parts, r.Blocks = s.tokens, s.parts[:len(s.parts):len(s.parts)], nil
	s.parts = append(s.parts, trace.Part{Role: "assistant", ID: id + 1, Tokens: answer})
	s.tokens += answer
}

// addWhole leaves the row as it is. Its prompt and its answer stand before the turns that follow.
func (s *soFar) addWhole(r *trace.Record) {
	one := *r
	s.addLength(&one)
}

// addText makes the row's messages of the turns before and its text. An answer is empty until there is one of the server's.
func (s *soFar) addText(r *trace.Record) {
	text, _ := json.Marshal(r.Text) // it never fails for a string
	s.messages = append(append(append(s.messages, `{"role":"user","content":`...), text...), '}')
	r.Messages, r.Text = slices.Concat([]byte{'['}, s.messages, []byte{']'}), ""
	s.messages = append(s.messages, `,{"role":"assistant","content":""},`...)
}
