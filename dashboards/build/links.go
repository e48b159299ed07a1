package main

import "strings"

// linksWith replaces the link with all variables by a link to each other dashboard with these variables alone: "All" is
// no choice for a variable with a single value.
func (b *board) linksWith(variables ...string) {
	var links []object
	for _, to := range [][2]string{{"overview", "Overview"}, {"canary", "Canary"}, {"comparison", "Comparison"}, {"correlation", "Correlation"}, {"health", "Replay health"}, {"fleet", "Fleet"}} {
		if b.UID == "replayd-"+to[0] {
			continue
		}
		with := make([]string, len(variables))
		for i, name := range variables {
			with[i] = "${" + name + ":queryparam}"
		}
		links = append(links, object{
			"type": "link", "title": to[1], "url": "/d/replayd-" + to[0] + "?" + strings.Join(with, "&"),
			"includeVars": false, "keepTime": true, "targetBlank": false, "icon": "dashboard",
		})
	}
	b.Links = append(links, b.Links[1:]...)
}

// opensPage adds a link to a document, unless it has no address.
func (b *board) opensPage(title, url string) {
	if url != "" {
		b.Links = append(b.Links, object{"type": "link", "title": title, "url": url, "targetBlank": true, "icon": "doc"})
	}
}

// leadsTo adds a link to another dashboard, with variables and time range.
func (p *panel) leadsTo(title, uid string) *panel {
	p.Links = append(p.Links, object{"title": title, "url": "/d/" + uid + "?${__all_variables}&${__url_time_range}"})
	return p
}

// opens adds a link to another dashboard, with the fleet and the time range: it may ask for one workload or target, where here are many.
func (p *panel) opens(name string) *panel {
	p.Links = append(p.Links, object{
		"title": "Open " + name, "url": "/d/replayd-" + name + "?${datasource:queryparam}&${cluster:queryparam}&${namespace:queryparam}&${__url_time_range}",
	})
	return p
}

// toBoard leads from a row to another dashboard, at the same time and with what the row names. A label that there is not gives an empty
// value, which matches what has no such label. Grafana's words: grafana.com/docs/grafana/latest/panels-visualizations/configure-data-links.
func toBoard(name string) object {
	url := "/d/replayd-" + name + "?${datasource:queryparam}"
	for _, label := range []string{"cluster", "namespace", "workload", "target", "model"} {
		url += "&var-" + label + "=${__data.fields." + label + ":percentencode}"
	}
	return object{"title": "Open " + name, "url": url + "&${__url_time_range}"}
}
