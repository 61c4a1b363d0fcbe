// Package page is the operator's page: one HTML page that shows the fleet as it
// changes and, for those who have the admin key, flips switches and replays dead
// letters.
//
//	GET  /              the page; GET /page/… its files, embedded, without a build step
//	GET  /page/events   server-sent events: hello once, then a view every second and at once after a change
//	GET  /page/dead     dead letters, the oldest first, without what was asked
//	POST /page/switch   {"flag": "feature.support", "to": "off", "reason": "…", "by": "ann"}
//	POST /page/replay   {"jobs": [{"id": "…", "feature": "…", "tenant": "…"}]} or {"all": true}
//
// Who may do what:
//
//	             no key, loopback    no key, elsewhere    admin key
//	look         yes                 no                   yes
//	act          no                  no                   yes
//
// "Loopback" is a page that listens on a loopback address only and is asked for
// by such a name, since a name that an attacker made resolve to this machine is
// one too, for a browser. Without an admin key in the settings nobody can act.
//
// Invariants:
//
//   - The key comes in the Authorization header, which no other site can make a
//     browser send, and is kept in the memory of the page. There are no cookies.
//   - The view is written as JSON and shown as text: nothing of it is markup, and
//     the Content-Security-Policy allows no inline script or style.
//   - A view is encoded once for all viewers. A viewer that is behind misses views
//     and gets the newest; one that does not read for WriteTimeout is cut off.
//     There are MaxViewers at most.
//
// When things fail: the view itself says what of it is out of date. An action
// that NATS does not carry out ends with an error that says so, within 10 s.
package page
