package nearest

import (
	"slices"
	"strings"
	"testing"
)

func TestWord(t *testing.T) {
	known := []string{"nodes", "gpus_per_node", "series", "name", "x"}
	for word, want := range map[string]string{
		"gpu_per_node": "gpus_per_node", "Nodes": "nodes", "ndoes": "nodes", "serie": "series", "nmae": "name", "y": "x",
		"memory": "", "": "x", "completely_else": "", strings.Repeat("n", 1000): "", "名": "x",
	} {
		if got := Word(word, known); got != want {
			t.Errorf("%q is near %q, want %q", word, got, want)
		}
	}
}

func TestNearWithoutBeingMistyped(t *testing.T) {
	known := []string{"every_steps", "hyperparams", "learning_rate", "lr_decay_steps", "batch_size", "max_num_steps", "verl/tune", "nemo-rl/grpo", "cpus", "gpus_per_node"}
	for word, want := range map[string]string{
		"every": "every_steps", "hyperparameters": "hyperparams", "bs": "batch_size", "learning": "learning_rate",
		"optimizer.learning_rate": "learning_rate", "tune": "verl/tune", "lr_decay": "lr_decay_steps", "num_steps": "max_num_steps",
		"gpus": "gpus_per_node", "gpu": "gpus_per_node", "num_gpus": "gpus_per_node", "gpu_count": "gpus_per_node", "cpu": "cpus",
		"nemo-rl/sft": "", "param": "", "e": "", "__": "", "max": "max_num_steps", "unrelated": "",
	} {
		if got := Word(word, known); got != want {
			t.Errorf("%q is near %q, want %q", word, got, want)
		}
	}
	if got := Mistyped("learning", known); got != "" {
		t.Errorf("%q is no mistyped word of %q", "learning", got)
	}
}

func TestNearestComesFirst(t *testing.T) {
	got := Words("steps", []string{"every_steps", "max_num_steps", "step", "stepsize_x", "other"}, 3)
	if want := []string{"step", "every_steps", "max_num_steps"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
