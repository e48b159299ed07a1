// Package reference has the page of this folder that replayd itself serves, and the address at which all documents are
// published.
package reference

import _ "embed"

// Repository is the public address of this project, such as https://github.com/OWNER/replayd. While it is "", nobody
// has published it: no page, dashboard, rule or image links to a document, and no workflow publishes a release. The
// chart and the mixin have the same address as values of their own (TestPublicAddress in deploy).
const Repository = ""

// Alerts is the runbook, alerts.md, which replayd serves at /runbook.
//
//go:embed alerts.md
var Alerts string

// Document returns the public address of a file of the repository, or "".
func Document(path string) string {
	if Repository == "" {
		return ""
	}
	return Repository + "/blob/main/" + path
}
