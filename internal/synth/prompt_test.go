package synth

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/internal/token"
	"replayd/internal/trace"
)

func words(t testing.TB, name string) *token.Words {
	t.Helper()
	w, err := token.List(name)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func prompter(t testing.TB, o Options) *Prompter {
	t.Helper()
	if o.Words == nil {
		o.Words = words(t, "main")
	}
	if o.Form == "" {
		o.Form = Text
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func row(number, tokens int, ids ...uint64) *trace.Record {
	return &trace.Record{Number: number, InputTokens: tokens, Blocks: ids}
}

// vocabulary returns the words of a list with their leading space, and the starters without one.
func vocabulary(w *token.Words) map[string]bool {
	known := map[string]bool{}
	for i := range w.Len() {
		known[string(w.Append(nil, i))] = true
	}
	for i := range w.Starters() {
		known[string(w.AppendStarter(nil, i))] = true
	}
	return known
}

var vocabularies = map[*token.Words]map[string]bool{}

// text makes a prompt and checks that it has the number of tokens that AppendText returns, each one a word of the
// list.
func text(t *testing.T, p *Prompter, r *trace.Record, salt uint64, overhead int) []string {
	t.Helper()
	got, n := p.AppendText([]byte("x"), r, salt, overhead)
	known := vocabularies[p.Words]
	if known == nil {
		known = vocabulary(p.Words)
		vocabularies[p.Words] = known
	}
	parts := strings.Split(string(got[1:]), " ")
	for i := range parts {
		if i > 0 {
			parts[i] = " " + parts[i]
		}
		if !known[parts[i]] {
			t.Fatalf("token %d of row %d is %q, which is not a token there", i, r.Number, parts[i])
		}
	}
	if want := max(1, r.InputTokens-overhead); len(parts) != want || n != want {
		t.Fatalf("row %d less %d: %d tokens, says %d, want %d", r.Number, overhead, len(parts), n, want)
	}
	return parts
}

func ids(t *testing.T, p *Prompter, r *trace.Record, salt uint64, overhead int) []int {
	t.Helper()
	got, n := p.AppendIDs([]byte("x"), r, salt, overhead)
	var list []int
	if err := json.Unmarshal(got[1:], &list); err != nil {
		t.Fatal(err)
	}
	if want := max(1, r.InputTokens-overhead); len(list) != want || n != want {
		t.Fatalf("row %d less %d: %d ids, says %d, want %d", r.Number, overhead, len(list), n, want)
	}
	for _, id := range list {
		if id < p.Words.FirstID || id > p.Words.LastID {
			t.Fatalf("id %d is not in %d to %d", id, p.Words.FirstID, p.Words.LastID)
		}
	}
	return list
}

func TestLengthIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, list := range []string{"main", "all"} {
		for _, block := range []int{16, 64, 512} {
			p := prompter(t, Options{Words: words(t, list), Seed: 42, BlockTokens: block})
			for i := range 40 {
				n := 1 + rng.IntN(2000)
				if i == 0 {
					n = 1
				}
				r := row(i, n)
				if i%3 > 0 {
					for range (n + block - 1) / block {
						r.Blocks = append(r.Blocks, rng.Uint64N(100))
					}
				}
				overhead := rng.IntN(40) * (i % 2)
				text(t, p, r, uint64(i), overhead)
				ids(t, p, r, uint64(i), overhead)
			}
		}
	}
}

func TestOneIdAtTwoSizesIsOnePrefix(t *testing.T) {
	// The older Mooncake documents have the ids [46, 47] for 655 and for 672 tokens.
	p := prompter(t, Options{Seed: 42, BlockTokens: 512})
	a, b := row(0, 655, 46, 47), row(1, 672, 46, 47)
	if short, long := text(t, p, a, 7, 0), text(t, p, b, 7, 0); !slices.Equal(short, long[:655]) {
		t.Error("655 tokens of [46, 47] are no prefix of 672 tokens of them")
	}
	if short, long := ids(t, p, a, 7, 0), ids(t, p, b, 7, 0); !slices.Equal(short, long[:655]) {
		t.Error("655 ids of [46, 47] are no prefix of 672 ids of them")
	}
	// A smaller block size takes shorter parts of the same streams.
	small := prompter(t, Options{Seed: 42, BlockTokens: 64})
	if full, cut := text(t, p, row(0, 512, 46), 7, 0), text(t, small, row(0, 128, 46, 47), 7, 0); !slices.Equal(full[:64], cut[:64]) {
		t.Error("64 tokens of block 46 are no prefix of 512 tokens of it")
	}
}

// common returns the length of the longest common prefix of two lists.
func common[T comparable](a, b []T) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func TestPrefixesAreSharedAsTheIdsSay(t *testing.T) {
	p := prompter(t, Options{Seed: 42, BlockTokens: 16})
	// Rows [1 2 3] and [1 2 4] share 32 tokens, and [5 2 3] shares none with them. A word or two more may be equal
	// by chance.
	a, b, c := row(0, 48, 1, 2, 3), row(1, 48, 1, 2, 4), row(2, 48, 5, 2, 3)
	for _, overhead := range []int{0, 3} {
		ta, tb, tc := text(t, p, a, 7, overhead), text(t, p, b, 7, overhead), text(t, p, c, 7, overhead)
		if n := common(ta, tb); n < 32 || n > 33 {
			t.Errorf("rows that share two blocks of 16 share %d tokens", n)
		}
		if n := common(ta, tc); n > 2 {
			t.Errorf("rows with different first blocks share %d tokens", n)
		}
		if !slices.Equal(ta[16:], tc[16:]) {
			t.Error("block 2 and 3 depend on the block before")
		}
		if n := common(ids(t, p, a, 7, overhead), ids(t, p, b, 7, overhead)); n != 32 {
			t.Errorf("rows that share two blocks of 16 share %d ids", n)
		}
	}
	// The overhead is subtracted from the end.
	if full, cut := text(t, p, a, 7, 0), text(t, p, a, 7, 20); !slices.Equal(full[:28], cut) {
		t.Error("a row less 20 tokens is not the row's first 28")
	}
}

func TestWhatKeepsTextsApart(t *testing.T) {
	base := ids(t, prompter(t, Options{Seed: 42, BlockTokens: 512}), row(3, 400, 3), 7, 0)
	p := prompter(t, Options{Seed: 42, BlockTokens: 512})
	for name, other := range map[string][]int{
		"salt":            ids(t, p, row(3, 400, 3), 8, 0),
		"id":              ids(t, p, row(3, 400, 4), 7, 0),
		"seed":            ids(t, prompter(t, Options{Seed: 43, BlockTokens: 512}), row(3, 400, 3), 7, 0),
		"row of that id":  ids(t, p, row(3, 400), 7, 0),
		"row of that id ": ids(t, p, row(4, 400), 7, 0),
	} {
		// For 400 draws from 99,000 ids, the probability of one equal id at the same position is 0.4 %, and of two
		// 10⁻⁵.
		same := 0
		for i := range base {
			if base[i] == other[i] {
				same++
			}
		}
		if same > 1 {
			t.Errorf("another %s: %d of 400 ids are the same", name, same)
		}
	}
	if again := ids(t, p, row(9, 400, 3), 7, 0); !slices.Equal(again, base) {
		t.Error("a row's number changes the text of its blocks")
	}
	if a, b := ids(t, p, row(5, 400), 7, 0), ids(t, p, row(6, 400), 7, 0); common(a, b) > 1 {
		t.Error("two rows without ids begin alike")
	}
	// If a row has too few ids, text of its own follows.
	if got := ids(t, p, row(5, 912, 3), 7, 0); !slices.Equal(got[:400], base) ||
		!slices.Equal(got[512:], ids(t, p, row(5, 400), 7, 0)) {
		t.Error("a row with too few ids does not end in its own text")
	}
}

// The reference output of SplitMix64 for seed 1234567, from its authors' C code.
func TestDrawsAreSplitMix64(t *testing.T) {
	s := stream(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		if got := s.Uint64(); got != want {
			t.Errorf("draw %d: %d, want %d", i, got, want)
		}
	}
}

func TestDrawsAreEven(t *testing.T) {
	// χ² of the first draws of 100,000 streams, over 25 equally likely words: 24 degrees of freedom, above 51 once
	// in 1,000.
	var count [25]int
	for id := range uint64(100_000) {
		s := newStream(42, 7, blockDomain, id)
		count[s.below(25)]++
	}
	chi := 0.0
	for _, n := range count {
		chi += float64(n-4000) * float64(n-4000) / 4000
	}
	if chi > 51 {
		t.Errorf("χ² = %.1f, want ≤ 51: %v", chi, count)
	}
}

func TestBytesIsRoomEnough(t *testing.T) {
	for _, list := range []string{"main", "all"} {
		for _, form := range []Form{Text, Tokens} {
			p := prompter(t, Options{Words: words(t, list), Form: form, BlockTokens: 512})
			for _, n := range []int{1, 2, 3, 10, 100, 1000, 126_195} {
				room := p.Bytes(row(0, n))
				// For long prompts the mean length is within 10 % of the room, so no memory is wasted.
				made := 0
				tries := max(1, 2000/n)
				for i := range tries {
					var b []byte
					if form == Text {
						b, _ = p.AppendText(nil, row(i, n), 1, 0)
					} else {
						b, _ = p.AppendIDs(nil, row(i, n), 1, 0)
					}
					if len(b) > room {
						t.Errorf("%s %s: %d tokens make %d bytes, room for %d", list, form, n, len(b), room)
					}
					made += len(b)
				}
				if n >= 1000 && float64(made)/float64(tries) < 0.9*float64(room) {
					t.Errorf("%s %s: %d tokens make %d bytes, room for %d", list, form, n, made/tries, room)
				}
			}
		}
	}
}

func TestNothingIsAllocatedWhereThereIsRoom(t *testing.T) {
	p := prompter(t, Options{Seed: 1, BlockTokens: 512})
	r := row(0, 1500, 1, 2, 3)
	buf := make([]byte, 0, 16*1500)
	for name, f := range map[string]func(){
		"text": func() { buf, _ = p.AppendText(buf[:0], r, 1, 7) },
		"ids":  func() { buf, _ = p.AppendIDs(buf[:0], r, 1, 7) },
	} {
		if n := testing.AllocsPerRun(20, f); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}

// The bytes must never change between versions or machines, or replays would not be comparable.
func TestBytesNeverChange(t *testing.T) {
	all := sha256.New()
	p := prompter(t, Options{Seed: 42, BlockTokens: 512})
	a := prompter(t, Options{Words: words(t, "all"), Seed: 7, BlockTokens: 16})
	var buf []byte
	for _, r := range []*trace.Record{row(0, 1), row(1, 655, 46, 47), row(2, 3000), row(3, 100, 1, 2, 3, 4, 5, 6, 7)} {
		for _, p := range []*Prompter{p, a} {
			buf, _ = p.AppendText(buf[:0], r, SaltLoop.At("conversation", time.Unix(1_700_000_000, 0), 0, nil), 0)
			all.Write(append(buf, '\n'))
			buf, _ = p.AppendIDs(buf[:0], r, Salt("fixed:x").At("", time.Time{}, 0, nil), 5)
			all.Write(append(buf, '\n'))
		}
	}
	if got := hex.EncodeToString(all.Sum(nil)); got != goldenHash {
		t.Errorf("sha256 of the prompts: %s, want %s", got, goldenHash)
	}
	buf, _ = p.AppendText(buf[:0], row(1, 8, 46), 0, 0)
	buf, _ = p.AppendIDs(append(buf, ' '), row(1, 5, 46), 0, 0)
	if got := string(buf); got != goldenText {
		t.Errorf("block 46 begins %q, want %q", got, goldenText)
	}
}

const (
	goldenHash = "3667dcdcf4681f3556f9e368a909acfe48ad37d8f5d9a2ff50afa6018f7b9d60"
	goldenText = "when destiny digest chemistry precursor actionable invoke frantic [85885,25435,26123,15087,66718]"
)

func BenchmarkAppendText(b *testing.B) {
	benchmark(b, func(p *Prompter, dst []byte, r *trace.Record) []byte {
		dst, _ = p.AppendText(dst, r, 1, 0)
		return dst
	})
}

func BenchmarkAppendIDs(b *testing.B) {
	benchmark(b, func(p *Prompter, dst []byte, r *trace.Record) []byte {
		dst, _ = p.AppendIDs(dst, r, 1, 0)
		return dst
	})
}

// benchmark makes prompts of 12,035 tokens, the mean of Mooncake's conversation trace.
func benchmark(b *testing.B, f func(*Prompter, []byte, *trace.Record) []byte) {
	p := prompter(b, Options{Seed: 42, BlockTokens: 512})
	r := row(0, 12_035)
	for i := range 24 {
		r.Blocks = append(r.Blocks, uint64(i))
	}
	buf := f(p, nil, r)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		buf = f(p, buf[:0], r)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/12_035, "ns/token")
}
