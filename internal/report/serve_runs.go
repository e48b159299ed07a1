package report

import (
	"slices"

	"replayd/internal/result"
)

// read returns the runs of a source. It reads the files again if they have changed.
func (d *Dashboard) read(s result.Source) ([]result.Run, error) {
	stamp := s.Stamp()
	i := slices.IndexFunc(d.kept, func(k keptRun) bool { return k.name == s.Name })
	if i >= 0 {
		k := d.kept[i]
		d.kept = slices.Delete(d.kept, i, i+1)
		if k.stamp == stamp {
			d.kept = append(d.kept, k)
			return k.runs, nil
		}
	}
	runs, err := s.Read()
	if err != nil {
		return nil, err
	}
	d.kept = append(d.kept, keptRun{s.Name, stamp, runs})
	for rows := d.rows(); rows > mostKept && len(d.kept) > 1; rows = d.rows() {
		d.kept = slices.Delete(d.kept, 0, 1)
	}
	return runs, nil
}

func (d *Dashboard) rows() (n int) {
	for _, k := range d.kept {
		for _, run := range k.runs {
			n += len(run.Rows)
		}
	}
	return n
}
