package synth

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"

	"replayd/internal/trace"
)

// Sample is the bundled trace, in Mooncake's format: what Demo makes of the seed SampleSeed.
//
//go:embed sample.jsonl
var Sample []byte

// SampleSeed is the seed of Sample.
const SampleSeed = 1

// WriteMooncake writes synthesized rows as JSON lines in Mooncake's format, with timestamps in whole milliseconds.
func WriteMooncake(w io.Writer, rows []trace.Record) error {
	type line struct {
		Timestamp    int64    `json:"timestamp"` // milliseconds
		InputLength  int      `json:"input_length"`
		OutputLength int      `json:"output_length"`
		HashIDs      []uint64 `json:"hash_ids"`
		SessionID    string   `json:"session_id,omitempty"`
	}
	enc := json.NewEncoder(w)
	for i := range rows {
		r := &rows[i]
		err := enc.Encode(line{r.Offset.Milliseconds(), r.InputTokens, r.OutputTokens, r.Blocks, r.Session})
		if err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
	}
	return nil
}
