package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const smallDockerfile = `ARG GO_VERSION=1
FROM golang:${GO_VERSION} AS source
RUN install -d -m 1777 /out/top/tmp && install -d -m 0750 /out/lib/replayd
FROM scratch AS replayd
ARG VERSION=0.0.0-dev \
    HOME_PAGE=""
LABEL a.version="$VERSION" \
      a.url="${HOME_PAGE}" a.title="two words"
COPY <<EOF /etc/passwd
nonroot
EOF
# a comment
COPY --from=source --chown=65532:65532 /out/lib/ /var/lib/
COPY --from=build /out/replayd /usr/bin/replayd
USER 1:1
EXPOSE 9797
HEALTHCHECK --interval=30s --retries=3 CMD ["/usr/bin/replayd", "health"]
ENTRYPOINT ["/usr/bin/replayd"]
`

func recipeOf(t *testing.T, text string) (*recipe, error) {
	t.Helper()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "Dockerfile"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return readRecipe(root, map[string]string{"VERSION": "v1"})
}

// An argument has its value or its default, and a label without a value is left out.
func TestRecipe(t *testing.T) {
	r, err := recipeOf(t, smallDockerfile)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.labels) != 2 || r.labels["a.version"] != "v1" || r.labels["a.title"] != "two words" {
		t.Errorf("want a version and a title, got %v", r.labels)
	}
	if len(r.files) != 3 || string(r.files[0].data) != "nonroot\n" || r.files[2].from != builtBinary {
		t.Fatalf("want a file, a folder and the binary, got %+v", r.files)
	}
	if folder := r.files[1]; folder.path != "var/lib/replayd/" || folder.mode != 0o750 || folder.id != 65532 {
		t.Errorf("want a folder of the user, got %+v", folder)
	}
}

// What the image of a release would not have is an error with its line, not left out.
func TestUnknownInstructions(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"USER 1:1", "VOLUME /data", "Dockerfile:15: VOLUME: want an instruction"},
		{"USER 1:1\n", "", "want USER, ENTRYPOINT and HEALTHCHECK"},
		{"FROM scratch AS", "FROM alpine AS", "want the last stage from scratch"},
		{"$VERSION", "$OTHER", "Dockerfile:7: LABEL: a.version: want an ARG OTHER"},
		{"--retries=3", "--tries=3", "--tries: want a flag"},
		{"--retries=3", "--retries=many", "--retries: strconv.Atoi"},
		{"/out/replayd ", "/out/other ", "Dockerfile:14: COPY: /out/other /usr/bin/replayd: want a file"},
		{"/out/lib/ ", "/out/none/ ", "want a folder that the stage source makes"},
		{"--chown=65532:65532", "--chown=nonroot", "want one number"},
		{"EOF\n# a", "END\n# a", "want the here-document to end with EOF"},
		{"AS replayd", "", "want FROM IMAGE AS NAME"},
	} {
		if !strings.Contains(smallDockerfile, c.old) {
			t.Fatalf("the Dockerfile has no %q", c.old)
		}
		if r, err := recipeOf(t, strings.Replace(smallDockerfile, c.old, c.new, 1)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: want %s, got %v, %v", c.new, c.want, r, err)
		}
	}
}
