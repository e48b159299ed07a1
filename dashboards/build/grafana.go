package main

import (
	"regexp"
	"slices"
	"strings"

	"replayd/docs/reference"
)

// Addresses of documents. While they are "", nobody has published the documents, and nothing links to them.
var (
	runbook         = reference.Document("docs/reference/alerts.md")
	correlationPage = reference.Document("docs/explanation/correlation.md")
	answersPage     = reference.Document("docs/reference/answers.md")
)

// object is a JSON object in Grafana's format. encoding/json sorts its keys.
type object = map[string]any

// A board is a dashboard in Grafana's classic format, schema version 42 (Grafana 12). Grafana documents the keys:
// grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model.
type board struct {
	UID           string   `json:"uid"`
	Title         string   `json:"title"`
	Description   string   `json:"description"`
	Tags          []string `json:"tags"`
	SchemaVersion int      `json:"schemaVersion"`
	Version       int      `json:"version"`
	Editable      bool     `json:"editable"`
	GraphTooltip  int      `json:"graphTooltip"` // 1: the crosshair is shared
	Timezone      string   `json:"timezone"`
	Refresh       string   `json:"refresh"`
	Time          object   `json:"time"`
	Links         []object `json:"links"`
	Annotations   object   `json:"annotations"`
	Templating    object   `json:"templating"`
	Panels        []*panel `json:"panels"`

	x, y, high int    // where the next panel goes, and how high the line is that it goes into
	last       int    // the ID of the last panel
	inside     *panel // the collapsed row that panels go into; nil: none
}

// A panel is a panel of a dashboard. Its place follows from the order in which panels are put.
type panel struct {
	ID              int      `json:"id"`
	Type            string   `json:"type"`
	Title           string   `json:"title"`
	Description     string   `json:"description,omitempty"`
	GridPos         gridPos  `json:"gridPos"`
	Collapsed       *bool    `json:"collapsed,omitempty"` // of rows
	Datasource      object   `json:"datasource,omitempty"`
	Targets         []target `json:"targets,omitempty"`
	FieldConfig     object   `json:"fieldConfig,omitempty"`
	Options         object   `json:"options,omitempty"`
	Transformations []object `json:"transformations,omitempty"`
	Links           []object `json:"links,omitempty"`
	Panels          []*panel `json:"panels,omitempty"` // of a collapsed row
}

type gridPos struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
}

type target struct {
	RefID        string `json:"refId"`
	Datasource   object `json:"datasource"`
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat,omitempty"`
	Format       string `json:"format,omitempty"` // time_series, table, heatmap
	Instant      bool   `json:"instant,omitempty"`
	Range        bool   `json:"range,omitempty"`
	Exemplar     bool   `json:"exemplar,omitempty"`
	Interval     string `json:"interval"` // least step
}

// prometheus is the data source that the variable selects.
func prometheus() object { return object{"type": "prometheus", "uid": "${datasource}"} }

// newBoard returns an empty dashboard. It links to the other dashboards, with all variables and the time range, and to
// the runbook where that is published. Annotations may use any of the variables.
func newBoard(uid, title, description string, annotations []object, variables ...object) *board {
	b := &board{
		UID: uid, Title: title, Description: description, Tags: []string{"replayd"}, SchemaVersion: 42, Version: 1, Editable: true,
		GraphTooltip: 1, Timezone: "browser", Refresh: "30s", Time: object{"from": "now-3h", "to": "now"},
		Links: []object{
			{"type": "dashboards", "title": "replayd", "tags": []string{"replayd"}, "asDropdown": false, "includeVars": true, "keepTime": true, "targetBlank": false, "icon": "external link"},
		},
		Annotations: object{"list": annotations},
		Templating:  object{"list": append(variables, scrape())},
	}
	b.opensPage("Runbook", runbook)
	return b
}

// rewrite changes each expression, and says whether any has become another.
func (b *board) rewrite(as func(string) string) (changed bool) {
	one := func(expr string) string {
		now := as(expr)
		changed = changed || now != expr
		return now
	}
	for _, p := range b.all() {
		for i := range p.Targets {
			p.Targets[i].Expr = one(p.Targets[i].Expr)
		}
	}
	for _, a := range b.Annotations["list"].([]object) {
		a["expr"] = one(a["expr"].(string))
	}
	for _, v := range b.Templating["list"].([]object) {
		if v["type"] == "query" {
			v["definition"] = one(v["definition"].(string))
			v["query"].(object)["query"] = v["definition"]
		}
	}
	return changed
}

// equals compares variables of a single choice with "=": Grafana escapes the values of the others only, and "llm-3.1" as a
// pattern is "llm-3-1" too.
func (b *board) equals(expr string) string {
	for _, v := range b.Templating["list"].([]object) {
		if many, listed := v["multi"].(bool); listed && !many {
			name := `"$` + v["name"].(string) + `"`
			expr = strings.ReplaceAll(expr, "=~"+name, "="+name)
		}
	}
	return expr
}

// row begins a group of panels under a title.
func (b *board) row(title string) { b.beginRow(title, false) }

// collapsedRow begins a group of panels that are shown after a click on its title.
func (b *board) collapsedRow(title string) { b.beginRow(title, true) }

func (b *board) beginRow(title string, collapsed bool) {
	if b.inside != nil { // the next row is right below a collapsed one
		b.y, b.x, b.high = b.inside.GridPos.Y+1, 0, 0
	}
	b.newLine()
	b.last++
	p := &panel{ID: b.last, Type: "row", Title: title, Collapsed: &collapsed, GridPos: gridPos{0, b.y, 24, 1}}
	b.Panels = append(b.Panels, p)
	b.inside = nil
	if collapsed {
		b.inside = p
	}
	b.y++
}

// all are the panels of a dashboard, with those of collapsed rows.
func (b *board) all() (all []*panel) {
	for _, p := range b.Panels {
		all = append(append(all, p), p.Panels...)
	}
	return all
}

// put places panels from left to right, each so wide (of 24 columns) and high, and begins a new line where one does not fit.
func (b *board) put(w, h int, panels ...*panel) {
	for _, p := range panels {
		if b.x+w > 24 {
			b.newLine()
		}
		b.last++
		p.ID, p.GridPos = b.last, gridPos{b.x, b.y, w, h}
		if b.inside != nil {
			b.inside.Panels = append(b.inside.Panels, p)
		} else {
			b.Panels = append(b.Panels, p)
		}
		b.x += w
		b.high = max(b.high, h)
	}
}

func (b *board) newLine() {
	b.y += b.high
	b.x, b.high = 0, 0
}

// A query is a PromQL expression and the legend of its series.
type query struct {
	expr   string
	legend string
}

// newPanel returns a panel of a kind. section is a heading of docs/reference/alerts.md, which says in detail what to do.
func newPanel(kind, title, unit, description, section string, queries []query) *panel {
	p := &panel{
		Type: kind, Title: title, Description: description, Datasource: prometheus(),
		FieldConfig: object{"defaults": object{"unit": unit}, "overrides": []object{}},
		Options:     object{},
	}
	if runbook == "" {
		p.Description += " Runbook: " + section + "."
	} else {
		p.Links = []object{{"title": "Runbook: " + section, "url": runbook + "#" + anchor(section), "targetBlank": true}}
	}
	for i, q := range queries {
		p.Targets = append(p.Targets, target{
			RefID: string(rune('A' + i)), Datasource: prometheus(), Expr: strings.TrimSpace(q.expr), LegendFormat: q.legend, Range: true, Interval: "$scrape",
		})
	}
	return p
}

// anchor returns the link anchor of a Markdown heading.
func anchor(heading string) string {
	return strings.ReplaceAll(strings.ToLower(heading), " ", "-")
}

// byName gives a series a color by its name: a workload, target or replica keeps it from panel to panel, whatever else
// is drawn. Two names may share a color, so it is not for the few names of other panels.
const byName = "palette-classic-by-name"

// named are the labels in the names of series that other panels draw, too.
var named = regexp.MustCompile(`\{\{(workload|target|address|instance|gpu)\}\}`)

// timeseries draws lines over time.
func timeseries(title, unit, description, section string, queries ...query) *panel {
	p := newPanel("timeseries", title, unit, description, section, queries)
	p.defaults()["custom"] = object{
		"drawStyle": "line", "lineWidth": 1, "fillOpacity": 8, "showPoints": "never", "spanNulls": false,
		"thresholdsStyle": object{"mode": "off"}, "stacking": object{"mode": "none", "group": "A"},
	}
	p.defaults()["color"] = object{"mode": "palette-classic"}
	if slices.ContainsFunc(queries, func(q query) bool { return named.MatchString(q.legend) }) {
		p.defaults()["color"] = object{"mode": byName}
	}
	p.Options = object{
		"legend":  object{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}},
		"tooltip": object{"mode": "multi", "sort": "desc"},
	}
	return p
}

// stat shows one figure per series, at the end of the time range.
func stat(title, unit, description, section string, queries ...query) *panel {
	p := newPanel("stat", title, unit, description, section, queries)
	p.defaults()["color"] = object{"mode": "thresholds"}
	p.Options = object{
		"colorMode": "value", "graphMode": "none", "justifyMode": "auto", "textMode": "auto", "orientation": "auto",
		"reduceOptions": object{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
	}
	for i := range p.Targets {
		p.Targets[i].Instant, p.Targets[i].Range = true, false
	}
	return p.empty("no data")
}

// empty sets the text of a stat without a figure, and no color. Otherwise Grafana uses the color below the first step,
// which is mostly green.
func (p *panel) empty(text string) *panel {
	list, _ := p.defaults()["mappings"].([]object)
	list = slices.DeleteFunc(list, func(m object) bool { return m["type"] == "special" })
	result := object{"text": text, "color": "text", "index": len(list)}
	return p.set(object{"noValue": text, "mappings": append(list, object{"type": "special", "options": object{"match": "null+nan", "result": result}})})
}

// word shows a value as a word.
func (p *panel) word(value, text, color string) *panel {
	list, _ := p.defaults()["mappings"].([]object)
	return p.set(object{"mappings": append(list, object{"type": "value", "options": object{value: object{"text": text, "color": color, "index": len(list)}}})})
}

// heatmap draws one histogram over time, brighter for more values.
func heatmap(title, unit, description, section string, q query) *panel {
	p := newPanel("heatmap", title, unit, description, section, []query{q})
	p.Targets[0].Format = "heatmap"
	p.defaults()["custom"] = object{"scaleDistribution": object{"type": "linear"}}
	p.Options = object{
		"calculate": false, "cellGap": 0, "filterValues": object{"le": 1e-9},
		"color":     object{"mode": "scheme", "scheme": "Oranges", "exponent": 0.5, "steps": 64, "reverse": false},
		"yAxis":     object{"unit": unit, "axisPlacement": "left"},
		"rowsFrame": object{"layout": "auto"},
		"tooltip":   object{"mode": "single", "yHistogram": false}, "legend": object{"show": false},
	}
	return p
}

// table has a row for each set of labels, and a column for each query.
func table(title, unit, description, section string, queries ...query) *panel {
	p := newPanel("table", title, unit, description, section, queries)
	for i := range p.Targets {
		p.Targets[i].Format, p.Targets[i].Instant, p.Targets[i].Range = "table", true, false
	}
	p.defaults()["custom"] = object{"align": "auto", "cellOptions": object{"type": "auto"}, "filterable": true}
	p.Options = object{"showHeader": true, "cellHeight": "sm"}
	return p
}

func (p *panel) defaults() object { return p.FieldConfig["defaults"].(object) }

// custom sets keys of the line style.
func (p *panel) custom(keys object) *panel {
	into, ok := p.defaults()["custom"].(object)
	if !ok {
		into = object{}
		p.defaults()["custom"] = into
	}
	for k, v := range keys {
		into[k] = v
	}
	return p
}

// set sets keys of the field: min, max, decimals, noValue, mappings and so on.
func (p *panel) set(keys object) *panel {
	for k, v := range keys {
		p.defaults()[k] = v
	}
	return p
}

// option sets keys of the panel's own options.
func (p *panel) option(keys object) *panel {
	for k, v := range keys {
		p.Options[k] = v
	}
	return p
}

// A step is a color for values from a value on.
type step struct {
	from  float64
	color string
}

// thresholds colors values; base is the color below the first step.
func (p *panel) thresholds(base string, steps ...step) *panel {
	list := []object{{"color": base, "value": nil}}
	for _, s := range steps {
		list = append(list, object{"color": s.color, "value": s.from})
	}
	return p.set(object{"thresholds": object{"mode": "absolute", "steps": list}})
}

// override sets properties, as pairs of id and value, of the series whose displayed name matches a regular expression.
func (p *panel) override(pattern string, idsAndValues ...any) *panel {
	var properties []object
	for i := 0; i < len(idsAndValues); i += 2 {
		properties = append(properties, object{"id": idsAndValues[i], "value": idsAndValues[i+1]})
	}
	p.FieldConfig["overrides"] = append(p.FieldConfig["overrides"].([]object),
		object{"matcher": object{"id": "byRegexp", "options": pattern}, "properties": properties})
	return p
}

// coloredQuery draws the series of a query, by its letter, in a color.
func (p *panel) coloredQuery(letter, color string) *panel {
	p.FieldConfig["overrides"] = append(p.FieldConfig["overrides"].([]object), object{
		"matcher":    object{"id": "byFrameRefID", "options": letter},
		"properties": []object{{"id": "color", "value": object{"mode": "fixed", "fixedColor": color}}},
	})
	return p
}

// needs says in the place of a panel without data what it needs.
func (p *panel) needs(text string) *panel { return p.set(object{"noValue": text}) }

// restNeeds says what the panels need that have no text of their own. A table would have it in each empty cell.
func (b *board) restNeeds(text string) *board {
	for _, p := range b.all() {
		if p.Type != "row" && p.Type != "table" && p.defaults()["noValue"] == nil {
			p.needs(text)
		}
	}
	return b
}

// exemplarsOf has Grafana ask for single requests behind the series of a legend, and draw them as dots.
func (p *panel) exemplarsOf(legend string) {
	for i := range p.Targets {
		p.Targets[i].Exemplar = p.Targets[i].LegendFormat == legend
	}
}

// stacked draws series on top of one another.
func (p *panel) stacked() *panel {
	return p.custom(object{"stacking": object{"mode": "normal", "group": "A"}, "fillOpacity": 40})
}
