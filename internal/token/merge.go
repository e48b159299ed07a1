package token

import (
	"math"
	"slices"
)

// A merger holds the buffers that one goroutine needs to merge the symbols of a word.
type merger struct {
	ids     []int
	symbols []int32 // the tokens of the word so far
	unknown bool    // the last symbol is the unknown token

	ranks      []int32  // by symbol: rank of its merge with the next symbol; math.MaxInt32 for none
	next, last []int32  // by symbol: its neighbors; for long words
	queue      []uint64 // heap of rank << 32 | symbol; for long words
}

// short is the number of symbols up to which repeated linear search for the lowest rank is faster than a heap.
const short = 48

// merge merges m.symbols and appends the remaining symbols.
func (b *bpe) merge(dst []int, m *merger) []int {
	if len(m.symbols) > short {
		return b.mergeLong(dst, m)
	}
	ids := m.symbols
	m.ranks = m.ranks[:0]
	for i := range ids {
		m.ranks = append(m.ranks, b.rankAt(ids, i))
	}
	ranks := m.ranks
	for len(ids) > 1 {
		at := 0
		for i, rank := range ranks {
			if rank < ranks[at] {
				at = i
			}
		}
		if ranks[at] == math.MaxInt32 {
			break
		}
		ids[at] = b.merges.slot(ids[at], ids[at+1]).becomes
		ids, ranks = slices.Delete(ids, at+1, at+2), slices.Delete(ranks, at+1, at+2)
		ranks[at] = b.rankAt(ids, at)
		if at > 0 {
			ranks[at-1] = b.rankAt(ids, at-1)
		}
	}
	for _, id := range ids {
		dst = append(dst, int(id))
	}
	return dst
}

func (b *bpe) rankAt(ids []int32, i int) int32 {
	if i+1 >= len(ids) {
		return math.MaxInt32
	}
	return b.merges.rank(ids[i], ids[i+1])
}

// mergeLong does the same in n log n steps: a word can be a megabyte of base64.
func (b *bpe) mergeLong(dst []int, m *merger) []int {
	n := len(m.symbols)
	ids := m.symbols
	m.ranks, m.next, m.last, m.queue = m.ranks[:0], m.next[:0], m.last[:0], m.queue[:0]
	m.ranks, m.next, m.last, m.queue = slices.Grow(m.ranks, n), slices.Grow(m.next, n), slices.Grow(m.last, n), slices.Grow(m.queue, n)
	for i := range ids {
		m.ranks = append(m.ranks, b.rankAt(ids, i))
		m.next = append(m.next, int32(i+1))
		m.last = append(m.last, int32(i-1))
		m.push(i)
	}
	for len(m.queue) > 0 {
		rank, at := m.pop()
		if rank != m.ranks[at] {
			continue // the rank has changed since this entry was queued
		}
		right := m.next[at]
		ids[at] = b.merges.slot(ids[at], ids[right]).becomes
		m.ranks[right] = none // the symbol is gone; this disables its queued entries
		m.next[at] = m.next[right]
		if after := m.next[at]; int(after) < n {
			m.last[after] = int32(at)
		}
		b.rerank(m, at)
		if before := m.last[at]; before >= 0 {
			b.rerank(m, int(before))
		}
	}
	for i := 0; i < n; i = int(m.next[i]) {
		dst = append(dst, int(ids[i]))
	}
	return dst
}

// rerank computes the rank of a symbol's merge with the next symbol, and queues it.
func (b *bpe) rerank(m *merger, at int) {
	m.ranks[at] = math.MaxInt32
	if right := m.next[at]; int(right) < len(m.symbols) {
		m.ranks[at] = b.merges.rank(m.symbols[at], m.symbols[right])
	}
	m.push(at)
}

func (m *merger) push(at int) {
	if m.ranks[at] == math.MaxInt32 {
		return
	}
	m.queue = append(m.queue, uint64(m.ranks[at])<<32|uint64(at))
	for i := len(m.queue) - 1; i > 0 && m.queue[i] < m.queue[(i-1)/2]; i = (i - 1) / 2 {
		m.queue[i], m.queue[(i-1)/2] = m.queue[(i-1)/2], m.queue[i]
	}
}

func (m *merger) pop() (rank int32, at int) {
	top, end := m.queue[0], len(m.queue)-1
	m.queue[0] = m.queue[end]
	m.queue = m.queue[:end]
	for i := 0; ; {
		child := 2*i + 1
		if child+1 < end && m.queue[child+1] < m.queue[child] {
			child++
		}
		if child >= end || m.queue[i] <= m.queue[child] {
			break
		}
		m.queue[i], m.queue[child] = m.queue[child], m.queue[i]
		i = child
	}
	return int32(top >> 32), int(uint32(top))
}
