package suite

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// InspectTaskset reads a taskset's folder as the client does before it uploads it: taskset.json and every file of its tasks,
// compared with the digests that it names. files are the names that are uploaded, taskset.json first. The error is of
// reading.
func InspectTaskset(root *os.Root, policy rule.Policy) (doc *TasksetDocument, files []string, report rule.Report, err error) {
	r := &findings{file: TasksetFile, report: rule.Report{Policy: policy}}
	src, ok, err := r.manifest(root)
	if err != nil || !ok {
		return nil, nil, r.finish(), err
	}
	doc, report = ParseTaskset(src, policy)
	if doc == nil || !report.OK() {
		return doc, nil, report, nil
	}
	files = []string{TasksetFile}
	var index Index
	for i, task := range doc.Tasks {
		below, ok, err := r.task(root, i, task.Path)
		if err != nil {
			return doc, nil, r.finish(), err
		}
		if !ok {
			continue
		}
		for _, f := range below {
			files = append(files, task.Path+"/"+f.Name)
			index = append(index, File{Name: task.Path + "/" + f.Name, Size: f.Size, Digest: f.Digest})
		}
	}
	report.Merge(r.finish())
	if report.OK() {
		report.Merge(doc.CheckFiles(index, policy))
	}
	return doc, files, report, nil
}

// manifest reads the taskset.json, which must be a file of its own.
func (f *findings) manifest(root *os.Root) (src []byte, ok bool, err error) {
	info, err := root.Lstat(TasksetFile)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !info.Mode().IsRegular():
		f.fault("taskset.file", "", nil, "the folder has no regular file %s", TasksetFile)
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case info.Size() > limit.TasksetManifest:
		f.fault("taskset.file", "", nil, "%s has %d bytes, at most %d are allowed", TasksetFile, info.Size(), limit.TasksetManifest)
		return nil, false, nil
	}
	src, err = root.ReadFile(TasksetFile)
	return src, true, err
}

// task lists the files of one task's folder, as the client orders them.
func (f *findings) task(root *os.Root, i int, folder string) (files []File, ok bool, err error) {
	field := fmt.Sprintf("tasks[%d].path", i)
	for at := folder; at != ""; at = parent(at) {
		info, err := root.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && at == folder && !info.IsDir() && info.Mode()&fs.ModeSymlink == 0:
			f.fault("taskset.marker", field, nil, "there is no folder %.200q", at)
			return nil, false, nil
		case err != nil:
			return nil, false, err
		case !info.IsDir():
			f.fault("taskset.file", field, nil, "%.200q is a link or no folder", at)
			return nil, false, nil
		}
	}
	files, ok, err = f.below(root, folder)
	slices.SortFunc(files, func(a, b File) int { return slices.Compare(strings.Split(a.Name, "/"), strings.Split(b.Name, "/")) })
	return files, ok, err
}

// below reads every file below a folder. ok is false when one is a link or nothing that has bytes.
func (f *findings) below(root *os.Root, folder string) (files []File, ok bool, err error) {
	ok = true
	err = fs.WalkDir(root.FS(), folder, func(at string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || e.IsDir():
			return err
		case !e.Type().IsRegular():
			f.fault("taskset.file", "", nil, "%.200q is a link or no regular file", at)
			ok = false
			return nil
		case len(files) >= limit.SuiteFiles:
			f.fault("suite.limit", "", nil, "the folder %.200q has more than %d files", folder, limit.SuiteFiles)
			ok = false
			return fs.SkipAll
		}
		one, err := HashFile(root, at)
		one.Name = at[len(folder)+1:]
		files = append(files, one)
		return err
	})
	return files, ok, err
}

// HashFile reads a file of a folder and gives its size and digest under its name.
func HashFile(root *os.Root, name string) (File, error) {
	file, err := root.Open(name)
	if err != nil {
		return File{}, err
	}
	defer file.Close()
	h := sha256.New()
	n, err := io.Copy(h, file)
	return File{Name: name, Size: n, Digest: digest.FromHash(digest.SHA256, h)}, err
}

// BuildTaskset makes the taskset.json of a folder: every folder below it that holds a task.toml is a task of the split. The
// report says why it can't; nothing is written.
func BuildTaskset(root *os.Root, split string, policy rule.Policy) ([]byte, rule.Report, error) {
	r := &findings{file: TasksetFile, report: rule.Report{Policy: policy}}
	var folders []string
	err := fs.WalkDir(root.FS(), ".", func(at string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && path.Base(at) == TaskMarker {
			folders = append(folders, path.Dir(at))
		}
		return err
	})
	if err != nil {
		return nil, r.finish(), err
	}
	rows := make([]TasksetTask, 0, len(folders))
	for i, folder := range folders {
		if folder == "." {
			r.fault("taskset.marker", "", nil, "%s lies in the root: put each task into a folder of its own", TaskMarker)
			continue
		}
		files, ok, err := r.task(root, i, folder)
		if err != nil {
			return nil, r.finish(), err
		}
		if ok {
			rows = append(rows, TasksetTask{ID: path.Base(folder), Path: folder, Split: split, SHA256: TaskDigest(files)})
		}
	}
	src, err := encodeTaskset(rows)
	if err != nil || !r.report.OK() {
		return nil, r.finish(), err
	}
	_, report := ParseTaskset(src, policy)
	return src, report, nil
}
