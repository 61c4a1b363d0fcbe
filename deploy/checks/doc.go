// Package checks holds the dashboard and the alert rules of this folder to what
// a worker really offers on /metrics. It is a module of its own, so that the
// program does not depend on the parser of Prometheus.
package checks
