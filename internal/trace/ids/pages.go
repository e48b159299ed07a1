package ids

// Pages is a list that grows by whole pages: growing copies no element, and leaves nothing to collect. Only the first page begins
// small, for short lists.
type Pages[T any] struct{ all [][]T }

const (
	pageBits = 13
	perPage  = 1 << pageBits
)

// Len returns the number of elements.
func (p *Pages[T]) Len() int {
	last := len(p.all) - 1
	if last < 0 {
		return 0
	}
	return last*perPage + len(p.all[last])
}

// At returns an element. It must be there, and may be changed.
func (p *Pages[T]) At(i uint32) *T { return &p.all[i>>pageBits][i%perPage] }

// Push appends an element.
func (p *Pages[T]) Push(v T) {
	last := len(p.all) - 1
	switch {
	case last < 0:
		p.all = append(p.all, nil)
		last++
	case len(p.all[last]) == perPage:
		p.all = append(p.all, make([]T, 0, perPage))
		last++
	}
	p.all[last] = append(p.all[last], v)
}
