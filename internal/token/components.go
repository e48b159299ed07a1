package token

import (
	"fmt"
	"strconv"

	"golang.org/x/text/unicode/norm"
)

// A component is a normalizer or a pre-tokenizer in a tokenizer.json. It has the fields of all types.
type component struct {
	Type          string      `json:"type"`
	Normalizers   []component `json:"normalizers"`
	Pretokenizers []component `json:"pretokenizers"`

	Pattern struct {
		String *string `json:"String"`
		Regex  *string `json:"Regex"`
	} `json:"pattern"`
	Content  string `json:"content"`
	Prepend  string `json:"prepend"`
	Behavior string `json:"behavior"`
	Invert   bool   `json:"invert"`

	AddPrefixSpace   *bool   `json:"add_prefix_space"`
	UseRegex         *bool   `json:"use_regex"`
	IndividualDigits bool    `json:"individual_digits"`
	Replacement      string  `json:"replacement"`
	PrependScheme    *string `json:"prepend_scheme"`
	Split            *bool   `json:"split"`
}

// maxSteps bounds the normalizers and pre-tokenizers of a file, including sequences and their members.
const maxSteps = 64

func (t *Tokenizer) step(field string) error {
	if t.parts++; t.parts > maxSteps {
		return fmt.Errorf("%.60s: want at most %d normalizers and pre-tokenizers, got more", field, maxSteps)
	}
	return nil
}

var forms = map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD}

func (t *Tokenizer) normalizer(c *component, field string) error {
	if c == nil {
		return nil
	}
	if err := t.step(field); err != nil {
		return err
	}
	if form, ok := forms[c.Type]; ok {
		t.steps = append(t.steps, normalization{form: &form})
		return t.grows(field, growthOf(c.Type), 0)
	}
	switch c.Type {
	case "Sequence":
		for i := range c.Normalizers {
			if err := t.normalizer(&c.Normalizers[i], field+".normalizers["+strconv.Itoa(i)+"]"); err != nil {
				return err
			}
		}
	case "Prepend":
		if c.Prepend != "" {
			t.steps = append(t.steps, normalization{prepend: c.Prepend})
			return t.grows(field, 1, len(c.Prepend))
		}
	case "Replace":
		step, least := normalization{new: c.Content}, 1 // a pattern matches one byte or more
		switch {
		case c.Pattern.String != nil && *c.Pattern.String != "":
			step.old, least = *c.Pattern.String, len(*c.Pattern.String)
		case c.Pattern.Regex != nil:
			p, err := compilePattern(*c.Pattern.Regex)
			if err != nil {
				return fmt.Errorf("%s.pattern.Regex: %w", field, err)
			}
			step.pattern = p
		default:
			return fmt.Errorf("%s.pattern: want a String or a Regex, got neither", field)
		}
		t.steps = append(t.steps, step)
		return t.grows(field, replaces(least, len(c.Content)), 0)
	default:
		return fmt.Errorf("%s.type: want Sequence, NFC, NFD, NFKC, NFKD, Prepend or Replace, got %.60q", field, c.Type)
	}
	return nil
}

// preTokenizer parses a pre-tokenizer. Only the first one of a sequence may insert text.
func (t *Tokenizer) preTokenizer(c *component, field string, first bool) error {
	if c == nil {
		return nil
	}
	if err := t.step(field); err != nil {
		return err
	}
	if t.model.byteLevel {
		return fmt.Errorf("%s: want ByteLevel as the last one, got %.60q after it", field, c.Type)
	}
	add := func(pattern string, b behavior, invert bool) error {
		p, err := compilePattern(pattern)
		t.splits = append(t.splits, split{pattern: p, behavior: b, invert: invert})
		return err
	}
	switch c.Type {
	case "Sequence":
		for i := range c.Pretokenizers {
			if err := t.preTokenizer(&c.Pretokenizers[i], field+".pretokenizers["+strconv.Itoa(i)+"]", first && i == 0); err != nil {
				return err
			}
		}
	case "ByteLevel":
		t.model.byteLevel = true
		if c.AddPrefixSpace == nil || *c.AddPrefixSpace {
			if !first {
				return fmt.Errorf("%s.add_prefix_space: want false where it is not the first, got true", field)
			}
			t.lead.text = " "
		}
		if c.UseRegex == nil || *c.UseRegex {
			return add(gpt2Pattern, isolated, false)
		}
	case "Split":
		b, ok := behaviors[c.Behavior]
		if !ok {
			return fmt.Errorf("%s.behavior: want Isolated, Removed, Contiguous, MergedWithPrevious or MergedWithNext, got %.60q", field, c.Behavior)
		}
		switch {
		case c.Pattern.Regex != nil:
			if err := add(*c.Pattern.Regex, b, c.Invert); err != nil {
				return fmt.Errorf("%s.pattern.Regex: %w", field, err)
			}
		case c.Pattern.String != nil && *c.Pattern.String != "":
			s, err := literalSplit(*c.Pattern.String, b)
			if err != nil {
				return fmt.Errorf("%s.pattern.String: %w", field, err)
			}
			s.invert = c.Invert
			t.splits = append(t.splits, s)
		default:
			return fmt.Errorf("%s.pattern: want a String or a Regex, got neither", field)
		}
	case "Digits":
		if c.IndividualDigits {
			return add(`\p{N}`, isolated, false)
		}
		return add(`\p{N}`, contiguous, false)
	case "Punctuation":
		b, ok := behaviors[c.Behavior]
		if c.Behavior == "" {
			b, ok = isolated, true
		}
		if !ok {
			return fmt.Errorf("%s.behavior: want one of Split's, got %.60q", field, c.Behavior)
		}
		return add("[\\p{P}!-/:-@\\[-`{-~]", b, false)
	case "Metaspace":
		return t.metaspace(c, field, first)
	default:
		return fmt.Errorf("%s.type: want Sequence, ByteLevel, Split, Digits, Punctuation or Metaspace, got %.60q", field, c.Type)
	}
	return nil
}

// metaspace parses SentencePiece's pre-tokenizer. Older files have add_prefix_space instead of prepend_scheme and split.
func (t *Tokenizer) metaspace(c *component, field string, first bool) error {
	if !first {
		return fmt.Errorf("%s: want Metaspace as the first one, got it later", field)
	}
	if c.Replacement == "" {
		return fmt.Errorf("%s.replacement: want a character, got none", field)
	}
	t.lead.spaces = c.Replacement
	scheme := "always"
	switch {
	case c.PrependScheme != nil:
		scheme = *c.PrependScheme
	case c.AddPrefixSpace != nil && !*c.AddPrefixSpace:
		scheme = "never"
	}
	switch scheme {
	case "always":
		t.lead.text = c.Replacement
	case "first":
		t.lead.text, t.lead.firstOnly = c.Replacement, true
	case "never":
	default:
		return fmt.Errorf("%s.prepend_scheme: want always, first or never, got %.60q", field, scheme)
	}
	if err := t.grows(field, replaces(len(" "), len(c.Replacement)), len(t.lead.text)); err != nil || c.Split != nil && !*c.Split {
		return err
	}
	s, err := literalSplit(c.Replacement, mergedWithNext)
	t.splits = append(t.splits, s)
	return err
}
