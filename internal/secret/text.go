package secret

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Text is a text of a server, a metrics page or a driver that may be kept and shown. Set.Text makes it, and nothing outside this package
// converts a string to one (test/security TestOneDoor), so a field of this type has passed the door. Its bytes may differ from those that came:
// a value that goes back to the server is kept as bytes.
type Text string

// cutMark is at the end of a text of which a part was left out.
const cutMark = "…"

// lookahead is how many bytes beyond four times the bound are looked at, so that what is masked and joined rarely leaves less than the bound.
const lookahead = 1 << 10

// Text is the one door for texts from outside. It masks the secrets, also those that a cut has divided, makes one line of printable characters
// and bounds it to most bytes.
func (set Set) Text(raw string, most int) Text {
	text := raw
	if looked := 4*most + lookahead; len(raw) > looked {
		text = set.HideCut(raw[:looked], "")
	}
	if strings.Contains(text, cutMark) {
		text = set.HideCut(text, cutMark) // another program has cut it
	} else {
		text = set.Hide(text)
	}
	if line := printable(text); line != text {
		text = set.Hide(line) // a secret with a space may have come with another white space
	}
	if len(text) > most || len(raw) > 4*most+lookahead {
		text = text[:runeStart(text, min(len(text), most-len(cutMark)))] + cutMark
	}
	if len(text) < len(raw) {
		text = strings.Clone(text) // a part must not keep all of it in memory
	}
	return Text(text)
}

// Error returns err with its text as the door lets it in. It unwraps to err.
func (set Set) Error(err error, most int) error {
	text := set.Text(err.Error(), most)
	if string(text) == err.Error() {
		return err
	}
	return &shownError{text, err}
}

type shownError struct {
	text Text
	err  error
}

func (e *shownError) Error() string { return string(e.text) }
func (e *shownError) Unwrap() error { return e.err }

// printable returns one line of printable characters. White space and all that is not printable, such as ESC, line ends and bidi controls,
// separates words.
func printable(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	plain, space := true, true
	for _, r := range text {
		plain = plain && unicode.IsPrint(r) && (!space || r != ' ')
		space = r == ' '
	}
	if plain && !space {
		return text
	}
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
}

// runeStart returns the last place up to n at which a character of the text begins.
func runeStart(text string, n int) int {
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}
