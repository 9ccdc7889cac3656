package archive

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// OpenDir hashes a directory and applies the rules and limits of archives to what Pack would put into one, so that
// the verdict is that of the archive. What the digest leaves out is left out, with a warning for each. Its report
// is the verdict; the Dir is nil where the directory is above a limit, and may be judged further where it is not.
// An error means that the directory could not be read.
func OpenDir(root *os.Root, opt Options) (*tree.Dir, rule.Report, error) {
	d, err := tree.OpenDirWithin(root, tree.Limits{Files: limit.Files, Bytes: limit.Unpacked, Path: limit.Path})
	report := rule.Report{Policy: opt.Policy}
	if over, ok := errors.AsType[*tree.LimitError](err); ok {
		report.Add(aboveLimit(over))
		return nil, report, nil
	}
	if err != nil {
		return nil, report, err
	}
	report = CheckTree(d, opt.Policy)
	// Only an archive tells its size, and only that of a large tree can be too much.
	if report.OK() && mayExceed(d.Listing()) {
		_, err = Pack(io.Discard, d)
		if denied, ok := errors.AsType[*rule.Denied](err); ok {
			report.Violations = append(report.Violations, denied.Decision.Violations...)
			return d, report, nil
		}
	}
	return d, report, err
}

// mayExceed reports whether the archive of a tree may have more bytes than are allowed. Compression adds five bytes to
// a block that it can't make smaller; a member's header, with its path twice, has less than 4 KiB.
func mayExceed(l *tree.Listing) bool {
	stream := l.Bytes + int64(l.Files)*4*limit.KiB
	return stream+stream/1024 > limit.Compressed-limit.KiB
}

func aboveLimit(over *tree.LimitError) rule.Violation {
	switch over.What {
	case "bytes":
		return violation("archive.limit.unpacked", over.Path, "with this file the pack has at least %d bytes, at most %d are allowed", over.Found, over.Limit)
	case "path":
		return violation("archive.limit.path", over.Path, "the path has %d bytes, at most %d are allowed", over.Found, over.Limit)
	}
	return violation("archive.limit.files", over.Path, "the folder has at least %d %s, at most %d are allowed", over.Found, over.What, over.Limit)
}

// CheckTree applies to a hashed tree the rules of names, collisions, links and sizes that an archive of it meets.
func CheckTree(t tree.Tree, policy rule.Policy) rule.Report {
	c := checker{report: rule.Report{Policy: policy}}
	l := t.Listing()
	switch {
	case l.Files == 0:
		c.add(rule.Violation{Rule: "archive.empty", Message: "the pack has no files"})
	case l.Files > limit.Files:
		c.add(rule.Violation{Rule: "archive.limit.files", Message: fmt.Sprintf("the pack has %d files, at most %d are allowed", l.Files, limit.Files)})
	case l.Bytes > limit.Unpacked:
		c.add(rule.Violation{Rule: "archive.limit.unpacked", Message: fmt.Sprintf("the pack has %d bytes, at most %d are allowed", l.Bytes, limit.Unpacked)})
	}
	for _, e := range l.Entries {
		if !c.entry(e) {
			return c.report
		}
	}
	c.leftOut(l)
	collide(c.clean, c.add)
	return c.report
}

// entry judges one entry of a tree.
func (c *checker) entry(e tree.Entry) (goOn bool) {
	switch e.Kind {
	case tree.Counted:
		before := len(c.report.Violations)
		goOn = c.add(checkPath(e.Path)...)
		if len(c.report.Violations) == before {
			c.clean = append(c.clean, e.Path)
		}
		return goOn
	case tree.Outside:
		v, _ := judgeLink(e.Path, e.Link, e.Kind)
		return c.add(v)
	}
	return true
}

// leftOut warns of what the digest does not count: of the first hundred by name, of the rest by number.
func (c *checker) leftOut(l *tree.Listing) {
	const named = 100
	n := 0
	for _, e := range l.Entries {
		why, out := reason(e)
		if !out {
			continue
		}
		if n++; n <= named {
			c.add(violation("archive.left-out", e.Path, "it is left out of the pack: %s", why))
		}
	}
	if n > named {
		c.add(rule.Violation{Rule: "archive.left-out", Message: fmt.Sprintf("%d more entries are left out of the pack", n-named)})
	}
}

// reason says why an entry is not part of the pack.
func reason(e tree.Entry) (why string, out bool) {
	switch e.Kind {
	case tree.Excluded:
		return "the digest excludes this name", true
	case tree.FolderLink:
		return "it is a link to a folder", true
	case tree.Dangling:
		return "it is a link that leads nowhere", true
	case tree.Special:
		return "it is no regular file", true
	}
	return "", false
}
