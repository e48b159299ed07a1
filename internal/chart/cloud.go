package chart

import (
	"encoding/base64"
	"encoding/binary"
	"math"

	"replayd/internal/number"
)

// Cells of the coarse picture, and its number of shades.
const (
	cloudColumns = 96
	cloudRows    = 48
	shades       = 5
)

// cloud draws a large number of points: the data from which a browser draws each point, and a coarse picture for readers
// without JavaScript.
func (c *Picture) cloud(s Series, class string) {
	var xs, ys []float64
	for i := range min(len(s.X), len(s.Y)) {
		if c.X.valid(s.X[i]) && c.Y.valid(s.Y[i]) {
			xs, ys = append(xs, s.X[i]), append(ys, s.Y[i])
		}
	}
	c.Cloud = number.Object{
		"Points", float32s(xs, ys), "N", len(xs),
		"XLo", c.XS.lo, "XHi", c.XS.hi, "YLo", c.YS.lo, "YHi", c.YS.hi, "XLog", c.XS.log, "YLog", c.YS.log,
		"XUnit", c.X.Unit, "YUnit", c.Y.Unit, "XName", c.X.Label, "YName", c.Y.Label,
	}
	var cells [cloudRows][cloudColumns]int
	most := 0
	for i := range xs {
		column := min(cloudColumns-1, max(0, int(c.XS.at(xs[i])/1000*cloudColumns)))
		row := min(cloudRows-1, max(0, int(c.YS.at(ys[i])/1000*cloudRows)))
		cells[row][column]++
		most = max(most, cells[row][column])
	}
	for shade := range shades {
		d := pen{}
		for row := range cells {
			for column := 0; column < cloudColumns; column++ {
				from := column
				for column < cloudColumns && shadeOf(cells[row][column], most) == shade+1 {
					column++
				}
				if column == from {
					continue
				}
				d.put("M", 1000*float64(from)/cloudColumns, 1000*float64(row+1)/cloudRows)
				d.WriteByte('H')
				d.number(1000 * float64(column) / cloudColumns)
				d.WriteByte('v')
				d.number(1000.0 / cloudRows)
				d.WriteByte('H')
				d.number(1000 * float64(from) / cloudColumns)
				d.WriteByte('z')
			}
		}
		if d.Len() > 0 {
			c.Paths = append(c.Paths, path{Class: "cell " + class + " d" + string(rune('1'+shade)), D: d.String()})
		}
	}
}

// shadeOf returns a shade that grows with the logarithm of a count: 0 for no points, otherwise 1 to shades.
func shadeOf(n, most int) int {
	if n == 0 {
		return 0
	}
	return 1 + min(shades-1, int(shades*math.Log1p(float64(n-1))/math.Log(float64(most)+0.5)))
}

// float32s encodes columns as Float32, little endian, one after the other, in base64url, which needs no escaping anywhere in a page.
func float32s(columns ...[]float64) string {
	var b []byte
	for _, column := range columns {
		for _, v := range column {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		}
	}
	return base64.RawURLEncoding.EncodeToString(b)
}
