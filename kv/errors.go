package kv

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound means that the key has no value.
	ErrNotFound = errors.New("key not found")

	// ErrConflict means that the key no longer has the revision that the caller
	// named, or exists where it had to be new. Nothing was written.
	ErrConflict = errors.New("the key was changed by somebody else")

	// ErrTooLarge means that a value does not fit the server's max_payload.
	ErrTooLarge = errors.New("value too large")

	// ErrNotMirrored means that a bucket does not republish its changes.
	ErrNotMirrored = errors.New("bucket does not republish its changes")

	errPausing = errors.New("the bucket could not be read a moment ago")

	errLeaderless = errors.New("the bucket has no leader")

	errMinority = errors.New("the bucket's leader has lost the majority of its replicas")
)

// BucketError says which setting of an existing bucket does not fit and what to
// do about it.
type BucketError struct {
	Bucket, Setting string
	Have, Want      string
	Remedy          string
	Err             error // the server's own answer, if it was asked
}

func (e *BucketError) Error() string {
	text := fmt.Sprintf("bucket %s has %s %s and needs %s: %s", e.Bucket, e.Setting, e.Have, e.Want, e.Remedy)
	if e.Err != nil {
		text += fmt.Sprintf(" (%v)", e.Err)
	}
	return text
}

func (e *BucketError) Unwrap() error { return e.Err }
