package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"

	"replayd/internal/file"
	"replayd/internal/trace"
)

// longestLook is the most bytes of a file's first line that typeOf reads.
const longestLook = 1 << 20

// typeOf detects AIPerf's type of a text file by its first row, as AIPerf does. It returns "" for a trace, and for a
// file that its reader will refuse.
func typeOf(path string) string {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir() && trace.IsFolder(context.Background(), path):
		return ""
	case err == nil && info.IsDir():
		return "random_pool"
	case err != nil || !info.Mode().IsRegular(): // a pipe can be read only once
		return ""
	}
	f, err := file.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, longestLook)).ReadBytes('\n')
	var row map[string]json.RawMessage
	_ = json.Unmarshal(line, &row) // what is no object has no keys
	for key, kind := range map[string]string{"turns": "multi_turn", "text": "single_turn", "texts": "single_turn"} {
		if row[key] != nil {
			return kind
		}
	}
	return ""
}
