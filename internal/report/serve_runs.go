package report

import (
	"slices"

	"replayd/internal/result"
)

// read gives a run as it is on the disk now.
func (d *Dashboard) read(s result.Source) (result.Run, error) {
	stamp := s.Stamp()
	i := slices.IndexFunc(d.kept, func(k keptRun) bool { return k.name == s.Name })
	if i >= 0 {
		k := d.kept[i]
		d.kept = slices.Delete(d.kept, i, i+1)
		if k.stamp == stamp {
			d.kept = append(d.kept, k)
			return k.run, nil
		}
	}
	run, err := s.Read()
	if err != nil {
		return run, err
	}
	d.kept = append(d.kept, keptRun{s.Name, stamp, run})
	for rows := d.rows(); rows > mostKept && len(d.kept) > 1; rows = d.rows() {
		d.kept = slices.Delete(d.kept, 0, 1)
	}
	return run, nil
}

func (d *Dashboard) rows() (n int) {
	for _, k := range d.kept {
		n += len(k.run.Rows)
	}
	return n
}
