package schemas

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
)

// Base begins the $id of every schema, so that they refer to one another by
// file name.
const Base = "https://github.com/llmbus/llmbus/schemas/"

//go:embed *.json
var files embed.FS

// Names lists the schemas in alphabetical order, without their .json.
func Names() []string {
	paths, _ := fs.Glob(files, "*.json") // the pattern is good
	for i := range paths {
		paths[i] = strings.TrimSuffix(paths[i], ".json")
	}
	return paths
}

// Text is one schema.
func Text(name string) ([]byte, error) {
	text, err := files.ReadFile(name + ".json")
	if err != nil {
		return nil, fmt.Errorf("there is no schema %q; there are %s", name, strings.Join(Names(), ", "))
	}
	return text, nil
}

// digestLength is how many hex digits of a digest are published: enough to tell
// two versions apart, and small in a service's metadata.
const digestLength = 16

// Metadata tells for each message that workers and callers exchange which
// version of its schema a worker was built with: "<$id>#sha256=<digits>".
func Metadata() map[string]string {
	published := make(map[string]string)
	for _, name := range []string{"request", "request-headers", "reply", "reply-headers", "frame", "event", "dead-letter", "status", "breaker", "flag"} {
		published["schema."+name] = Base + name + ".json#sha256=" + digest(name)
	}
	return published
}

func digest(name string) string {
	text, err := Text(name)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:digestLength]
}
