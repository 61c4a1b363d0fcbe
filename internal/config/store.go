package config

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/llmbus/llmbus/kv"
)

// PartsOf takes the parts out of a mirror of the llm_features bucket.
func PartsOf(entries iter.Seq[kv.Entry]) Parts {
	parts := Parts{}
	for e := range entries {
		parts[e.Key] = string(e.Value)
	}
	return parts
}

// Load reads the parts once, for those who have no mirror.
func Load(ctx context.Context, bucket *kv.Bucket) (Parts, error) {
	mirror, err := kv.NewMirror(bucket, kv.MirrorConfig{})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { _ = mirror.Run(ctx) }) // its only error is a closed connection, which ends the wait below by ctx
	select {
	case <-mirror.Ready():
		return PartsOf(mirror.All()), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("read the llm_features bucket: %w", context.Cause(ctx))
	}
}

// Push makes a bucket that holds some parts hold others, and returns the keys
// that it had to write or remove. What others need is written first and removed
// last, so that a worker that reads in between finds nothing missing.
func Push(ctx context.Context, bucket *kv.Bucket, held, next Parts) ([]string, error) {
	var changed []string
	for _, key := range inOrder(next) {
		if text, ok := held[key]; ok && text == next[key] {
			continue
		}
		if _, err := bucket.Put(ctx, key, []byte(next[key])); err != nil {
			return changed, err
		}
		changed = append(changed, key)
	}
	gone := inOrder(held)
	slices.Reverse(gone)
	for _, key := range gone {
		if _, stays := next[key]; stays || key == keyApplied {
			continue
		}
		if err := bucket.Delete(ctx, key, 0); err != nil {
			return changed, err
		}
		changed = append(changed, key)
	}
	return changed, nil
}

// inOrder lists the keys with features last.
func inOrder(parts Parts) []string {
	keys := parts.Keys()
	slices.SortStableFunc(keys, func(a, b string) int { return rank(a) - rank(b) })
	return keys
}

func rank(key string) int {
	if strings.HasPrefix(key, kindFeature+".") {
		return 1
	}
	return 0
}

// PushFile pushes the parts of a file, unless this very file was the last one
// that was pushed in this way: what the bucket holds now was then put there
// since, on purpose. data is the file's text. It returns the keys that changed.
func PushFile(ctx context.Context, bucket *kv.Bucket, held, next Parts, data []byte) ([]string, error) {
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	if held[keyApplied] == digest {
		return nil, nil
	}
	changed, err := Push(ctx, bucket, held, next)
	if err != nil {
		return changed, err
	}
	_, err = bucket.Put(ctx, keyApplied, []byte(digest))
	return changed, err
}
