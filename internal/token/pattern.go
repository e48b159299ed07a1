package token

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxPattern bounds a pre-tokenizer's pattern, in bytes. The longest one in a published tokenizer has 500.
const maxPattern = 8 << 10

// maxWays bounds the paths through a pattern that a match may have to try: (a|b)(a|b)(a|b)… has 2, 4, 8. GPT-4o's pattern
// has 19.
const maxWays = 1000

// A pattern is a regular expression that splits a text. Go's regexp has no look-ahead, its \s is ASCII only, and it is slow
// here. So Go's package only parses the syntax, and this is a backtracking matcher for the constructs of published
// tokenizers: alternatives of repeated character classes, and the look-ahead (?!\S). Other constructs are rejected when a
// pattern is compiled.
type pattern struct {
	first   *node
	classes classes
}

// A node matches a part of a text and passes the rest to next. A nil next is the end of the pattern.
type node struct {
	class    int     // class of the runes that match; -1 for the other kinds of node
	min, max int     // number of runes that match, at least and at most; a max of -1 is unlimited
	branches []*node // if there is no class: alternatives in the order in which they are tried
	atSpace  bool    // if there is neither a class nor branches: the look-ahead (?!\S)
	next     *node
}

// compilePattern compiles a pattern in Oniguruma's syntax. It accepts constructs with the same meaning in Go's syntax.
func compilePattern(source string) (*pattern, error) {
	if len(source) > maxPattern {
		return nil, fmt.Errorf("want a pattern of at most %d bytes, got %d", maxPattern, len(source))
	}
	translated, err := translate(source)
	if err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(translated, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("unsupported pattern %q: %w", source, err)
	}
	p := &pattern{}
	if p.first, err = p.compile(tree, nil); err != nil {
		return nil, fmt.Errorf("unsupported pattern %q: %w", source, err)
	}
	if p.first.mayBeEmpty() {
		return nil, fmt.Errorf("unsupported pattern %q: it matches nothing at all", source)
	}
	if ways := p.first.ways(map[*node]int{}); ways > maxWays {
		return nil, fmt.Errorf("unsupported pattern %q: want at most %d ways through its alternatives, got more", source, maxWays)
	}
	return p, nil
}

// space is Unicode's White_Space, for use in brackets.
const space = `\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}`

// translate rewrites constructs that have the same syntax and another meaning in Go. The look-ahead (?!\S) becomes \b. A \b
// in the source is rejected, since it is ASCII only there.
func translate(source string) (string, error) {
	var out strings.Builder
	inClass := false
	for i := 0; i < len(source); i++ {
		rest := source[i:]
		switch {
		case rest[0] == '\\' && len(rest) > 1:
			i++
			switch escape := rest[1]; {
			case escape == 's' && inClass:
				out.WriteString(space)
			case escape == 's':
				out.WriteString("[" + space + "]")
			case escape == 'S' && !inClass:
				out.WriteString("[^" + space + "]")
			case escape == 'd':
				out.WriteString(`\p{Nd}`)
			case strings.IndexByte("SDwWbBAzZGQE", escape) >= 0:
				return "", fmt.Errorf(`unsupported pattern %q: \%c`, source, escape)
			default:
				out.WriteString(rest[:2])
			}
		case inClass && (rest[0] == '[' || strings.HasPrefix(rest, "&&")): // a nested class
			return "", fmt.Errorf("unsupported pattern %q: %q inside of brackets", source, rest[:1])
		case inClass:
			inClass = rest[0] != ']'
			out.WriteByte(rest[0])
		case strings.HasPrefix(rest, `(?!\S)`):
			i += len(`(?!\S)`) - 1
			out.WriteString(`\b`)
		default:
			inClass = rest[0] == '['
			out.WriteByte(rest[0])
		}
	}
	return out.String(), nil
}

// compile returns the nodes of a syntax tree, linked to the nodes that follow.
func (p *pattern) compile(tree *syntax.Regexp, next *node) (*node, error) {
	switch tree.Op {
	case syntax.OpWordBoundary:
		return &node{class: -1, atSpace: true, next: next}, nil
	case syntax.OpEmptyMatch:
		return &node{class: -1, branches: []*node{next}}, nil
	case syntax.OpCapture:
		return p.compile(tree.Sub[0], next)
	case syntax.OpConcat:
		var err error
		for i := len(tree.Sub) - 1; i >= 0 && err == nil; i-- {
			next, err = p.compile(tree.Sub[i], next)
		}
		return next, err
	case syntax.OpAlternate:
		n := &node{class: -1}
		for _, sub := range tree.Sub {
			branch, err := p.compile(sub, next)
			if err != nil {
				return nil, err
			}
			n.branches = append(n.branches, branch)
		}
		return n, nil
	case syntax.OpLiteral:
		for i := len(tree.Rune) - 1; i >= 0; i-- {
			class, err := p.classes.add(literal(tree.Rune[i], tree.Flags&syntax.FoldCase != 0))
			if err != nil {
				return nil, err
			}
			next = &node{class: class, min: 1, max: 1, next: next}
		}
		return next, nil
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		return p.repeat(tree, next)
	}
	return p.one(tree, 1, 1, next)
}

// repeat compiles a quantifier of a character or a class. Only ? may follow a group.
func (p *pattern) repeat(tree *syntax.Regexp, next *node) (*node, error) {
	if tree.Flags&syntax.NonGreedy != 0 {
		return nil, fmt.Errorf("%s is not greedy", tree)
	}
	least, most := tree.Min, tree.Max
	switch tree.Op {
	case syntax.OpStar:
		least, most = 0, -1
	case syntax.OpPlus:
		least, most = 1, -1
	case syntax.OpQuest:
		least, most = 0, 1
	}
	sub := tree.Sub[0]
	for sub.Op == syntax.OpCapture {
		sub = sub.Sub[0]
	}
	if tree.Op != syntax.OpQuest || sub.Op == syntax.OpCharClass || sub.Op == syntax.OpLiteral && len(sub.Rune) == 1 {
		return p.one(sub, least, most, next)
	}
	with, err := p.compile(sub, next)
	if err != nil {
		return nil, err
	}
	return &node{class: -1, branches: []*node{with, next}}, nil
}

// one compiles a single character or class with its number of repetitions.
func (p *pattern) one(tree *syntax.Regexp, least, most int, next *node) (*node, error) {
	var runes []rune // pairs: from, to
	switch {
	case tree.Op == syntax.OpCharClass:
		runes = tree.Rune
	case tree.Op == syntax.OpLiteral && len(tree.Rune) == 1:
		runes = literal(tree.Rune[0], tree.Flags&syntax.FoldCase != 0)
	case tree.Op == syntax.OpAnyChar:
		runes = []rune{0, utf8.MaxRune}
	case tree.Op == syntax.OpAnyCharNotNL:
		runes = []rune{0, '\n' - 1, '\n' + 1, utf8.MaxRune}
	default:
		return nil, fmt.Errorf("want a character or a class, got %s", tree)
	}
	class, err := p.classes.add(runes)
	return &node{class: class, min: least, max: most, next: next}, err
}

// mayBeEmpty reports whether the pattern from n on can match without consuming a rune.
func (n *node) mayBeEmpty() bool {
	switch {
	case n == nil:
		return true
	case n.class >= 0:
		return n.min == 0 && n.next.mayBeEmpty()
	case n.atSpace:
		return n.next.mayBeEmpty()
	}
	return slices.ContainsFunc(n.branches, (*node).mayBeEmpty)
}

// ways returns the number of paths from n to the end, or a number above maxWays.
func (n *node) ways(known map[*node]int) int {
	if n == nil {
		return 1
	}
	if _, ok := known[n]; !ok {
		if n.branches == nil {
			known[n] = n.next.ways(known)
		}
		for _, branch := range n.branches {
			known[n] = min(known[n]+branch.ways(known), maxWays+1)
		}
	}
	return known[n]
}
