#!/bin/sh
# A Slurm cluster of one node on the loopback interface, wholly in one folder: its own munge key and socket, its own ports,
# spool and logs. Needs root, and Debian's slurm-wlm and munge; no service of the machine is used or changed.
# Usage: cluster.sh up DIR [CONF]    CONF holds further lines of slurm.conf; on success DIR/env sets what clients need
#        cluster.sh conf DIR CONF    other further lines, taken by the running daemons
#        cluster.sh down DIR         ends what up started; DIR is the caller's to remove
set -eu

free_ports() {
	python3 -c 'import socket
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(s.getsockname()[1] for s in held))'
}

# waits COMMAND…: until it succeeds, for half a minute.
waits() {
	for _ in $(seq 150); do
		if "$@" >/dev/null 2>&1; then return 0; fi
		sleep 0.2
	done
	echo "cluster.sh: gave up waiting for: $*" >&2
	return 1
}

configure() {
	cat >"$dir/slurm.conf" <<EOF
ClusterName=loopback
SlurmctldHost=$(uname -n | cut -d. -f1)(127.0.0.1)
SlurmctldPort=$1
SlurmdPort=$2
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
SlurmdParameters=config_overrides
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
MailProg=/bin/true
NodeName=node1 NodeHostname=$(uname -n | cut -d. -f1) NodeAddr=127.0.0.1 CPUs=4 RealMemory=1024 State=UNKNOWN
PartitionName=main Nodes=node1 Default=YES MaxTime=INFINITE OverSubscribe=NO State=UP
include $dir/further.conf
EOF
}

idle() { sinfo --noheader --format=%T | grep -qx idle; }

up() {
	mkdir -p "$dir/munge" "$dir/state" "$dir/spool"
	chmod 755 "$dir" "$dir/munge" "$dir/state" "$dir/spool"
	cat ${1:+"$1"} </dev/null >"$dir/further.conf"
	mungekey --create --keyfile="$dir/munge/key"
	munged --force --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/munge/pid" \
		--log-file="$dir/munge/log" --seed-file="$dir/munge/seed" --num-threads=2
	configure $(free_ports)
	echo "export SLURM_CONF=$dir/slurm.conf" >"$dir/env"
	export SLURM_CONF="$dir/slurm.conf"
	slurmctld -i -f "$SLURM_CONF"
	slurmd -N node1 -f "$SLURM_CONF"
	waits idle || {
		tail -n 20 "$dir/slurmctld.log" "$dir/slurmd.log" >&2
		return 1
	}
}

# ends PIDFILE: the process that wrote it, at once when it does not end by itself.
ends() {
	pid=$(cat "$1" 2>/dev/null) || return 0
	kill "$pid" 2>/dev/null || return 0
	for _ in $(seq 50); do
		kill -0 "$pid" 2>/dev/null || return 0
		sleep 0.1
	done
	kill -9 "$pid" 2>/dev/null || true
}

down() {
	if [ -f "$dir/slurm.conf" ]; then
		export SLURM_CONF="$dir/slurm.conf"
		scancel --state=RUNNING --state=PENDING --signal=KILL --full 2>/dev/null || true
		scancel --state=PENDING 2>/dev/null || true
	fi
	ends "$dir/slurmd.pid"
	ends "$dir/slurmctld.pid"
	ends "$dir/munge/pid"
}

verb=$1
dir=$2
case $verb in
up) up "${3:-}" ;;
conf)
	cat "$3" >"$dir/further.conf"
	SLURM_CONF="$dir/slurm.conf" scontrol reconfigure
	;;
down) down ;;
*)
	echo "usage: cluster.sh up|conf|down DIR [CONF]" >&2
	exit 2
	;;
esac
