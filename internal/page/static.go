package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"slices"
	"time"
)

//go:embed static
var static embed.FS

// mediaTypes are spelt here, since a machine's own table may differ.
func mediaTypes() map[string]string {
	return map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
}

// files are the page's own, in memory, each with a tag of its content, so that a
// browser asks again and is seldom sent anything.
type files map[string]file

type file struct {
	data      []byte
	kind, tag string
}

func embedded() (files, error) {
	list, err := fs.ReadDir(static, "static")
	if err != nil {
		return nil, err
	}
	all, types := files{}, mediaTypes()
	for _, e := range list {
		data, err := static.ReadFile("static/" + e.Name())
		if err != nil {
			return nil, err
		}
		kind := types[path.Ext(e.Name())]
		if kind == "" {
			return nil, fmt.Errorf("page: %s has no media type", e.Name())
		}
		sum := sha256.Sum256(data)
		all[e.Name()] = file{data, kind, `"` + hex.EncodeToString(sum[:8]) + `"`}
	}
	return all, nil
}

func (f files) names() []string { return slices.Sorted(maps.Keys(f)) }

func (f files) serve(name string) http.HandlerFunc {
	file := f[name]
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", file.kind)
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("ETag", file.tag)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(file.data))
	}
}
