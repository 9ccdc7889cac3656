package pack

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/canonical"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// place checks what the client's catalogue checks of a recipe that was read: that it is where its document says, has
// its template, and can be hashed.
func (r *recipeReader) place() {
	r.sameFramework()
	if r.opt.Name != "" && r.out.Name != "" && r.out.Name != r.opt.Name {
		r.fault("recipe.name.pack", "", r.root.Get("name"), "the recipe is named %.100q and the pack %.100q: expected one name", r.out.Name, r.opt.Name)
	}
	if r.tree != nil && r.out.Template != "" {
		r.hashTemplate()
	}
	r.hash()
}

// sameFramework compares the framework as read with the document's text of it, which the client doesn't strip.
func (r *recipeReader) sameFramework() {
	v := r.root.Get("framework")
	if v.Truthy() && r.out.Framework != "" && v.PyStr() != r.out.Framework {
		r.fault("recipe.framework.blank", "", v, "the framework %.100q has white space around it", v.PyStr())
	}
}

// hash computes the digests that the handshake compares (packs.md 5.1).
func (r *recipeReader) hash() {
	form, err := canonical.Python(r.root)
	if err != nil {
		r.unhashable(err)
		return
	}
	r.out.ManifestDigest = digest.FromBytes(form)
	r.out.Digest = HandshakeDigest(r.out.ManifestDigest)
}

// unhashable says why the document has no canonical form, at the place of the value at fault.
func (r *recipeReader) unhashable(err error) {
	at, why, where := r.root, err.Error(), "it"
	if e, ok := errors.AsType[*canonical.Error](err); ok {
		why = e.Message
		if e.Path != "" {
			where = fmt.Sprintf("the value at %.200q", e.Path)
		}
		at = or(firstValue(r.root, unhashableBy(e.Reason)), r.root)
	}
	r.fault("recipe.hashable", "", at, "the document can't be hashed, because %s has no form in JSON: %s", where, printed(why, 300))
}

// unhashableBy tells the values that have no canonical form for a reason.
func unhashableBy(reason canonical.Reason) func(*pyvalue.Value) bool {
	return func(v *pyvalue.Value) bool {
		switch reason {
		case canonical.Unserializable:
			return slices.Contains([]pyvalue.Kind{pyvalue.Date, pyvalue.DateTime, pyvalue.Bytes, pyvalue.Set}, v.Kind)
		case canonical.Keys:
			return v.Kind == pyvalue.Map && slices.ContainsFunc(v.Items, func(it pyvalue.Item) bool {
				return (it.Key.Kind == pyvalue.Str) != (v.Items[0].Key.Kind == pyvalue.Str) || !isNumber(it.Key) && it.Key.Kind != pyvalue.Str && !isNone(it.Key)
			})
		case canonical.Surrogate:
			return v.Kind == pyvalue.Str && !utf8.ValidString(v.Text)
		}
		return false
	}
}

// firstValue finds the first value of a document that is so, in its order; nil when there is none.
func firstValue(v *pyvalue.Value, is func(*pyvalue.Value) bool) *pyvalue.Value {
	if is(v) {
		return v
	}
	for _, it := range v.List {
		if found := firstValue(it, is); found != nil {
			return found
		}
	}
	for _, it := range v.Items {
		if found := firstValue(it.Value, is); found != nil {
			return found
		}
	}
	return nil
}

// HandshakeDigest is the digest by which clients and server compare a recipe: formula D2 of packs.md 5.1 over its
// manifest digest.
func HandshakeDigest(manifest digest.Digest) digest.Digest {
	return digest.FromBytes(fmt.Appendf(nil, `{"manifest":"%s"}`, manifest))
}

// hashTemplate finds the template folder and computes its digest.
func (r *recipeReader) hashTemplate() {
	folder, reached := findFolder(r.tree.Listing(), r.out.Template)
	at := r.root.Get("template")
	switch reached {
	case nowhere:
		r.fault("recipe.template", "template", at, "the pack has no folder %.200q (an archive holds no empty folders)",
			r.out.Template)
		return
	case outside:
		r.fault("recipe.template.outside", "template", at, "the folder %.200q leads out of the pack", r.out.Template)
		return
	case byLink:
		r.fault("recipe.template.link", "template", at,
			"the folder %.200q is reached through a link, which archives don't hold", r.out.Template)
	}
	sum, err := tree.ContentBelow(r.tree, folder)
	if err != nil {
		r.err = fmt.Errorf("hash the template: %w", err)
		return
	}
	r.out.TemplateDigest = sum
	if sum == emptyDigest {
		r.fault("recipe.template.empty", "template", at, "the folder %.200q holds no file that counts, so no archive has it",
			r.out.Template)
	}
}

// emptyDigest is the content digest of a folder without counted files.
var emptyDigest = digest.FromBytes(nil)

// maxLinks is how many folder links are followed to a template.
const maxLinks = 40

// reached says how a folder of a pack was found.
type reached uint8

const (
	nowhere reached = iota // there is none
	outside                // a link on the way leaves the pack
	byLink                 // through a link that stays inside
	direct
)

// findFolder resolves a folder of the pack by POSIX rules, through links that stay inside. It returns the folder's own
// path, "." for the root.
func findFolder(l *tree.Listing, p string) (folder string, how reached) {
	rest, at, links := strings.Split(p, "/"), ".", 0
	for len(rest) > 0 {
		next := path.Join(at, rest[0])
		rest = rest[1:]
		if next == ".." || strings.HasPrefix(next, "../") {
			return "", outside
		}
		e, _ := l.Lookup(next)
		switch {
		case next == "." || next == at:
			at = next
		case e.Kind == tree.Outside:
			return "", outside
		case e.Kind == tree.FolderLink:
			if links++; links > maxLinks || strings.HasPrefix(e.Link, "/") {
				return "", nowhere
			}
			rest = append(strings.Split(e.Link, "/"), rest...)
		case !isFolder(l, next):
			return "", nowhere
		default:
			at = next
		}
	}
	if links > 0 {
		return at, byLink
	}
	return at, direct
}

// isFolder reports whether the listing has a folder at a clean path, by an entry of its own or by one below it.
func isFolder(l *tree.Listing, p string) bool {
	if e, ok := l.Lookup(p); ok {
		return e.Kind == tree.Folder
	}
	i := firstAt(l.Entries, p+"/")
	return i < len(l.Entries) && strings.HasPrefix(l.Entries[i].Path, p+"/")
}

// firstAt is the index of the first entry whose path is not before p.
func firstAt(entries []tree.Entry, p string) int {
	i, _ := slices.BinarySearchFunc(entries, p, func(e tree.Entry, p string) int { return strings.Compare(e.Path, p) })
	return i
}
