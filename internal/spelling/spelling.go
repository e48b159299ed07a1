// Package spelling finds the name that a misspelled word stands for.
package spelling

import (
	"fmt"
	"strings"
)

// Nearest returns the name that is closest to a word: that with the fewest typing mistakes (a character inserted, deleted, replaced, or two
// swapped), at most one in three characters. It returns "" if there is none.
func Nearest(word string, names []string) string {
	best, least := "", len(word)/3
	for _, name := range names {
		if d := Distance(word, name); d <= least && name != word && (best == "" || d < least) {
			best, least = name, d
		}
	}
	return best
}

// DidYouMean returns " (did you mean NAME?)" with the prefix before the nearest name, or "" if no name is near.
func DidYouMean(word, prefix string, names []string) string {
	if name := Nearest(word, names); name != "" {
		return " (did you mean " + prefix + name + "?)"
	}
	return ""
}

// Want is the text of an error about a word that is none of the names: "want a, b or c, got "x" (did you mean b?)".
func Want(names []string, got string) string {
	return fmt.Sprintf("want %s, got %q%s", Or(names), got, DidYouMean(got, "", names))
}

// Or lists names: "a, b or c".
func Or(names []string) string {
	if n := len(names) - 1; n > 0 {
		return strings.Join(names[:n], ", ") + " or " + names[n]
	}
	return names[0]
}

// Distance is the optimal string alignment distance between two words, in bytes.
func Distance(a, b string) int {
	// Three rows of the table: rows[2] belongs to the current character of a, the others to the two before it.
	var rows [3][]int
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
	}
	for j := range rows[2] {
		rows[2][j] = j
	}
	for i := range len(a) {
		rows[0], rows[1], rows[2] = rows[1], rows[2], rows[0]
		rows[2][0] = i + 1
		for j := range len(b) {
			replaced := rows[1][j]
			if a[i] != b[j] {
				replaced++
			}
			rows[2][j+1] = min(rows[1][j+1]+1, rows[2][j]+1, replaced)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				rows[2][j+1] = min(rows[2][j+1], rows[0][j-1]+1)
			}
		}
	}
	return rows[2][len(b)]
}
