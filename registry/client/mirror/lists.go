package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// A list is asked for pageSize entries at a time; a page has at most maxPage bytes, and at most maxEmpty pages in a row may
// hold nothing.
const (
	pageSize = 1000
	maxPage  = 8 * limit.MiB
	maxEmpty = 10
)

// pages yields a list's entries page by page. A list whose next page is one that was there already, that has more than
// maxEntries entries, or whose pages stay empty, is an error: it would not end.
func pages[T any](ctx context.Context, r *remote, c call, entries func([]byte) ([]T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		seen, total, empty := map[string]bool{}, 0, 0
		for {
			list, next, err := page(ctx, r, c, entries)
			if err != nil {
				yield(none, err)
				return
			}
			for _, e := range list {
				if !yield(e, nil) {
					return
				}
			}
			if total += len(list); len(list) > 0 {
				empty = 0
			} else {
				empty++
			}
			if next == nil {
				return
			}
			if seen[next.RequestURI()] || total > maxEntries || empty > maxEmpty || len(seen) > maxEntries {
				yield(none, registry.Errorf(registry.TooLarge, "the list %s does not end: after %d entries its next page is %.200q", c.path, total, next.RequestURI()))
				return
			}
			seen[next.RequestURI()] = true
			c.at = next
		}
	}
}

// page fetches one page and where the next one is, nil at the end.
func page[T any](ctx context.Context, r *remote, c call, entries func([]byte) ([]T, error)) (list []T, next *url.URL, err error) {
	err = r.opt.retry(ctx, func() error {
		res, err := r.try(ctx, c, []int{http.StatusOK})
		if err != nil {
			return err
		}
		defer res.Close()
		body, err := readAtMost(res, maxPage)
		if err != nil {
			return err
		}
		if list, err = entries(body); err != nil {
			return registry.Errorf(registry.Invalid, "%s: the answer is no list: %w", c.path, err)
		}
		next, err = r.next(res.Header.Values("Link"))
		return err
	})
	return list, next, err
}

// next is the address of the next page. Only its path and query count: a list goes on at the registry where it began.
func (r *remote) next(links []string) (*url.URL, error) {
	for _, link := range links {
		target, params, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(link), "<"), ">")
		if !ok || !strings.Contains(strings.ReplaceAll(params, `"`, ""), "rel=next") {
			continue
		}
		u, err := r.base.Parse(target)
		if err != nil || !strings.HasPrefix(u.Path, "/v2/") {
			return nil, registry.Errorf(registry.Invalid, "the next page %.200q is no address of the registry", target)
		}
		return &url.URL{Scheme: r.base.Scheme, Host: r.base.Host, Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}, nil
	}
	return nil, nil
}

// Repositories implements place.
func (r *remote) Repositories(ctx context.Context) iter.Seq2[string, error] {
	c := call{method: http.MethodGet, path: "/v2/_catalog", query: url.Values{"n": {strconv.Itoa(pageSize)}}, scopes: []string{auth.ScopeRegistryCatalog}}
	names := pages(ctx, r, c, func(body []byte) ([]string, error) {
		var list struct {
			Repositories []string `json:"repositories"`
		}
		err := json.Unmarshal(body, &list)
		return list.Repositories, err
	})
	return distinct(names, registry.CheckRepositoryName)
}

// Tags implements place.
func (r *remote) Tags(ctx context.Context, repository string) iter.Seq2[string, error] {
	c := r.in(repository, http.MethodGet, "/tags/list")
	c.query = url.Values{"n": {strconv.Itoa(pageSize)}}
	tags := pages(ctx, r, c, func(body []byte) ([]string, error) {
		var list struct {
			Tags []string `json:"tags"`
		}
		err := json.Unmarshal(body, &list)
		return list.Tags, err
	})
	return distinct(tags, checkTag)
}

func checkTag(tag string) error {
	ref, err := registry.ParseReference(tag)
	if err == nil && ref.Tag == "" {
		err = registry.Errorf(registry.TagInvalid, "%.150q is no tag", tag)
	}
	return err
}

// distinct leaves out what came before, and ends with an error at a name that is none.
func distinct(names iter.Seq2[string, error], check func(string) error) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		seen := map[string]bool{}
		for name, err := range names {
			if err == nil {
				err = check(name)
			}
			if err != nil {
				yield("", err)
				return
			}
			if seen[name] {
				continue
			}
			if seen[name] = true; !yield(name, nil) {
				return
			}
		}
	}
}

// Referrers implements place.
func (r *remote) Referrers(ctx context.Context, repository string, subject digest.Digest) (list []descriptor, known bool, err error) {
	c := r.in(repository, http.MethodGet, "/referrers/"+subject.String())
	for d, err := range pages(ctx, r, c, func(body []byte) ([]descriptor, error) {
		var index contents
		err := json.Unmarshal(body, &index)
		return index.Manifests, err
	}) {
		if absent(err) || registry.CodeOf(err) == registry.Unsupported {
			return nil, false, nil
		}
		if err == nil && d.Digest.IsZero() {
			err = registry.Errorf(registry.Invalid, "a referrer of %s has no digest", subject)
		}
		if err != nil {
			return nil, true, fmt.Errorf("referrers of %s: %w", subject, err)
		}
		if list = append(list, d); len(list) > maxReferrers {
			return nil, true, registry.Errorf(registry.TooLarge, "%s has more than %d referrers", subject, maxReferrers)
		}
	}
	return list, true, nil
}
