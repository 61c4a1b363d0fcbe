package app

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/llmbus/llmbus/gateway"
)

// lookEvery is how soon a change of the file of API keys counts.
const lookEvery = time.Second

// keyFile is a file of API keys that may change while it is used: a key is taken
// back, or replaced by another, without a restart. A text that is refused is
// reported, and the keys before it stay in force.
type keyFile struct {
	path string
	fit  func(*gateway.Keys) error
	log  *slog.Logger

	mu     sync.Mutex
	keys   *gateway.Keys
	info   os.FileInfo // of the text in force, or of the one that was refused
	looked time.Time
	gone   bool // it could not be read, and that was said
}

// newKeyFile reads the file.
func newKeyFile(path string, fit func(*gateway.Keys) error, log *slog.Logger) (*keyFile, error) {
	f := &keyFile{path: path, fit: fit, log: log, looked: time.Now()}
	return f, f.read()
}

func (f *keyFile) read() error {
	info, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(f.path)
	if err != nil {
		return err
	}
	f.info = info
	keys, err := gateway.ParseKeys(string(text))
	if err == nil {
		err = f.fit(keys)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.keys = keys
	return nil
}

// Tenant is that of gateway.Keys, by the keys in force.
func (f *keyFile) Tenant(secret string) (tenant string, ok bool) { return f.current().Tenant(secret) }

// Len is the number of keys in force.
func (f *keyFile) Len() int { return f.current().Len() }

func (f *keyFile) current() *gateway.Keys {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.looked) >= lookEvery {
		f.looked = now
		f.look()
	}
	return f.keys
}

// look reads the file anew if it has changed.
func (f *keyFile) look() {
	info, err := os.Stat(f.path)
	if err == nil && os.SameFile(info, f.info) && info.ModTime().Equal(f.info.ModTime()) && info.Size() == f.info.Size() {
		return
	}
	if err == nil {
		err = f.read()
	}
	switch {
	case err == nil:
		f.log.Info("API keys read", "keys", f.keys.Len())
	case !f.gone:
		f.log.Error("the file of API keys cannot be read; the keys before stay in force", "error", err)
	}
	f.gone = err != nil
}
