package kv

import (
	"context"
	"time"
)

// SetFlag writes a flag for the whole fleet and returns its revision. Key, On,
// Now, By and Reason count. A key that names nothing is refused, and so is a
// Reason that begins with "now" or "@", which would read as something else.
func SetFlag(ctx context.Context, b *Bucket, f Flag) (revision uint64, err error) {
	value, err := f.checked()
	if err != nil {
		return 0, err
	}
	return b.Put(ctx, f.Key, []byte(value))
}

// Validate refuses what SetFlag refuses, and says why.
func (f Flag) Validate() error {
	_, err := f.checked()
	return err
}

func (f Flag) checked() (value string, err error) {
	if _, _, err := parseKey(f.Key); err != nil {
		return "", err
	}
	return f.value()
}

// ClearFlag deletes a flag, malformed ones too, which leaves on what it
// switched.
func ClearFlag(ctx context.Context, b *Bucket, key string) error { return b.Delete(ctx, key, 0) }

// ReadFlags reads all flags from the server, each with the time it was set.
func ReadFlags(ctx context.Context, b *Bucket) (*FlagSet, error) {
	s, err := b.read(ctx)
	if err != nil {
		return nil, err
	}
	r := newReplica(map[string]*Entry{})
	if _, err := r.adopt(s, time.Now()); err != nil {
		return nil, err
	}
	flags := make([]Flag, 0, len(r.entries))
	for _, e := range r.entries {
		flags = append(flags, entryFlag(*e))
	}
	return newFlagSet(flags), nil
}

func entryFlag(e Entry) Flag {
	f := parseFlag(e.Key, string(e.Value))
	f.Revision, f.Set = e.Revision, e.Created
	return f
}
