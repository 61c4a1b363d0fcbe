// Package arch holds the shape of the project as a test: which package may
// import which, and how large files and functions may grow.
package arch
