package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

func startRegistry(d *demo) error {
	if err := d.unpackPacks(); err != nil {
		return err
	}
	if err := d.startServer(); err != nil {
		return err
	}
	fmt.Println("  serving at " + d.address)
	return nil
}

func signIn(d *demo) error {
	if err := d.login("data/admin-token", "admin"); err != nil {
		return err
	}
	if err := d.says(0, []string{"admin", "account", "create", "alice"}, `alice \(operator\)`); err != nil {
		return err
	}
	token, err := d.save("alice-token", "admin", "token", "create", "alice")
	if err != nil {
		return err
	}
	d.alice = strings.TrimSpace(token)
	key, err := d.save("registry-key", "admin", "key", "show")
	if err != nil {
		return err
	}
	if err := d.check(strings.Contains(key, "PUBLIC KEY"), "sf admin key show prints no key: %s", key); err != nil {
		return err
	}
	return d.login("alice-token", "alice")
}

// digestLine is a digest that the output of a publish names.
var digestLine = regexp.MustCompile(`(?m)^ +(content|tree|manifest) +(sha256:[0-9a-f]{64})$`)

func publishPacks(d *demo) error {
	for _, pack := range []string{"grad-clip", "tiny-sft", "arithmetic"} {
		output, err := d.command(0, "plugin", "publish", "packs/"+pack)
		if err != nil {
			return err
		}
		found := digestLine.FindAllStringSubmatch(output, -1)
		if err := d.check(len(found) == 3, "the output does not name both digests and the manifest's"); err != nil {
			return err
		}
		for _, m := range found {
			d.digests[pack+" "+m[1]] = m[2]
		}
	}
	return d.listed()
}

// listed checks that the registry holds the three packs and nothing else.
func (d *demo) listed() error {
	output, err := d.command(0, "plugin", "ls")
	if err != nil {
		return err
	}
	if err := d.check(strings.Count(output, "\n") == 4, "the registry should list three packs"); err != nil {
		return err
	}
	for _, row := range []string{`alice/grad-clip +1\.2\.0 +algorithm`, `alice/tiny-sft +0\.3\.0 +recipe`, `alice/arithmetic +2\.0\.1 +benchmark`} {
		if err := d.check(regexp.MustCompile(row).MatchString(output), "the list does not match %s", row); err != nil {
			return err
		}
	}
	return nil
}

func refuseHelper(d *demo) error {
	err := d.copyPack("tiny-sft", "with-helper", "echo 'import os' > packs/with-helper/helper.py", func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "helper.py"), []byte("import os\n"), 0o644)
	})
	if err != nil {
		return err
	}
	return d.says(3, []string{"plugin", "publish", "packs/with-helper"}, `helper\.py`, `\[layout\.declarative\]`, `hint: `)
}

func refuseEntrypoint(d *demo) error {
	err := d.copyPack("grad-clip", "misspelled", "sed -i s/grad_clip.patch:/grad_clip.pacth:/ packs/misspelled/plugin.yaml", func(dir string) error {
		return replaceIn(filepath.Join(dir, "plugin.yaml"), "grad_clip.patch:", "grad_clip.pacth:")
	})
	if err != nil {
		return err
	}
	return d.says(3, []string{"plugin", "publish", "packs/misspelled"}, `grad_clip/pacth\.py`, `\[layout\.entrypoint\]`, `hint: `)
}

func refuseTorch(d *demo) error {
	err := d.copyPack("grad-clip", "with-torch", "echo 'tensor = None' > packs/with-torch/torch.py", func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "torch.py"), []byte("tensor = None\n"), 0o644)
	})
	if err != nil {
		return err
	}
	return d.says(3, []string{"plugin", "publish", "packs/with-torch"}, `torch\.py`, `\[layout\.reserved\]`, `hint: `)
}

func refuseSecond(d *demo) error {
	if err := d.says(6, []string{"plugin", "publish", "packs/grad-clip"}, `versions never change`, `Its bytes are the same`); err != nil {
		return err
	}
	err := d.copyPack("grad-clip", "changed", "echo '# faster' >> packs/changed/grad_clip/schedule.py", func(dir string) error {
		f, err := os.OpenFile(filepath.Join(dir, "grad_clip", "schedule.py"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteString("# faster\n")
		return err
	})
	if err != nil {
		return err
	}
	if err := d.says(6, []string{"plugin", "publish", "packs/changed"}, `Its bytes differ`); err != nil {
		return err
	}
	return d.listed()
}
