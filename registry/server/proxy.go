package server

import (
	"net/http"
	"net/netip"
	"strings"
)

// proxies are the networks whose word about a client's address is taken.
type proxies []netip.Prefix

func newProxies(networks []string) (proxies, error) {
	list := make(proxies, len(networks))
	for i, text := range networks {
		var err error
		if list[i], err = parseNetwork(text); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (p proxies) trusts(ip netip.Addr) bool {
	for _, network := range p {
		if network.Contains(ip) {
			return true
		}
	}
	return false
}

// remote is the address of who asks: the peer's, unless the peer is a proxy that is trusted. Each proxy adds the address that
// it was asked from at the right, so the first address from there that is no trusted proxy's is the client; what
// stands to the left of it is the client's own word.
func (p proxies) remote(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	ip := peer.Addr().Unmap().WithZone("")
	if err != nil || !p.trusts(ip) {
		return ip
	}
	hops := r.Header.Values("X-Forwarded-For")
	parse := netip.ParseAddr
	if len(hops) == 0 {
		hops, parse = r.Header.Values("Forwarded"), forwardedFor
	}
	for i := len(hops) - 1; i >= 0; i-- {
		for rest := hops[i]; rest != ""; {
			var hop string
			if comma := strings.LastIndexByte(rest, ','); comma >= 0 {
				rest, hop = rest[:comma], rest[comma+1:]
			} else {
				rest, hop = "", rest
			}
			next, err := parse(strings.TrimSpace(hop))
			if err != nil {
				return ip // nobody can say who is behind that
			}
			if ip = next.Unmap().WithZone(""); !p.trusts(ip) {
				return ip
			}
		}
	}
	return ip
}

// forwardedFor reads an element of a Forwarded header (RFC 7239).
func forwardedFor(element string) (netip.Addr, error) {
	node := ""
	for pair := range strings.SplitSeq(element, ";") {
		if name, value, _ := strings.Cut(strings.TrimSpace(pair), "="); strings.EqualFold(name, "for") {
			node = strings.Trim(value, `"`)
		}
	}
	if strings.HasPrefix(node, "[") || strings.Count(node, ":") == 1 {
		if withPort, err := netip.ParseAddrPort(node); err == nil {
			return withPort.Addr(), nil
		}
		node = strings.Trim(node, "[]")
	}
	return netip.ParseAddr(node)
}

// callerNetwork is what counts as one caller where nobody signed in: an IPv6 line has a whole /64.
func callerNetwork(ip netip.Addr) netip.Addr {
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return ip
}
