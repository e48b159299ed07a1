package main

import (
	"strconv"
	"strings"
)

// A column of a table is a query with the colors of its cells.
type column struct {
	name, expr, unit string
	base             string // the color below the first step; empty: no color
	steps            []step
}

// rows is a table with a row for each set of the labels in by, in that order, and a column for each query.
func rows(title, description, section, by string, columns []column, sortedBy ...object) *panel {
	var queries []query
	renamed, place := object{}, object{}
	labels := strings.Split(strings.TrimSuffix(strings.TrimPrefix(by, "by ("), ")"), ", ")
	for i, label := range labels {
		place[label] = i + 1
	}
	for i, c := range columns {
		queries = append(queries, query{c.expr, ""})
		value := "Value #" + string(rune('A'+i))
		renamed[value], place[value] = c.name, len(labels)+1+i
		if c.name == "state" {
			place[value] = 0 // the sort key of the rows is read first
		}
	}
	p := table(title, "none", description, section, queries...)
	p.Transformations = []object{
		{"id": "merge", "options": object{}},
		{"id": "organize", "options": object{"excludeByName": object{"Time": true}, "indexByName": place, "renameByName": renamed}},
	}
	p.option(object{"sortBy": sortedBy})
	p.override("^(workload|address)$", "custom.width", 124).override("^target$", "custom.width", 104).
		override("^(model|namespace)$", "custom.width", 84, "custom.filterable", false).
		override("^(cluster|rank)$", "custom.width", 64, "custom.filterable", false)
	for _, c := range columns {
		wide := max(56, 16+8*len(c.name)) // so that its name can be read on a narrow page, where the table scrolls sideways
		for _, s := range sortedBy {
			if s["displayName"] == c.name {
				wide += 16 // for the arrow
			}
		}
		look := []any{"unit", c.unit, "custom.align", "right", "custom.minWidth", wide, "custom.filterable", false}
		if c.base != "" {
			list := []object{{"color": c.base, "value": nil}}
			for _, s := range c.steps {
				list = append(list, object{"color": s.color, "value": s.from})
			}
			look = append(look, "thresholds", object{"mode": "absolute", "steps": list}, "custom.cellOptions", object{"type": "color-background", "mode": "basic"})
		}
		p.override("^"+c.name+"$", look...)
	}
	return p
}

// words maps 0, 1 and so on to texts.
func words(texts ...string) []object {
	options := object{}
	for i, text := range texts {
		options[strconv.Itoa(i)] = object{"text": text, "index": i}
	}
	return []object{{"type": "value", "options": options}}
}
