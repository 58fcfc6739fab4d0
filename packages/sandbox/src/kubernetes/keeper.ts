/**
 * The first process of a pod. Invariants: it forks nothing once it waits, so that `kill -9 -1` of the pod's own user never ends it;
 * it ends by itself when the lease is past, and the pod with it. The lease is an annotation of the pod, which the node writes into a
 * folder that nobody in the pod may write to: whoever may change the pod renews it, its agent can't.
 */

/** The lease as Unix seconds. */
export const leaseAnnotation = "rolldeck.dev/lease-until";
/** A volume of the node's, with the lease as a file. */
export const keeperFolder = "/rolldeck";
export const leaseFileName = "lease";

const script = `
trap : TERM INT HUP
until=$1
exec 9<> <(:)
while :; do
  printf -v now '%(%s)T' -1
  said=
  { IFS= read -r said < "${keeperFolder}/${leaseFileName}"; } 2>/dev/null
  case $said in ''|*[!0-9]*) ;; *) until=$said;; esac
  [ "$now" -ge "$until" ] && exit 0
  read -r -t 5 -u 9 _
  [ $? -eq 1 ] && exec sleep "$((until - now))"
done`;

/** @param until Unix seconds, for as long as the node has written nothing */
export const keeperCommand = (until: number): string[] => ["bash", "-c", script, "keeper", String(until)];
