import type { BundleLine } from '../bundle/lines.ts';
import { type Note, parseVerifierKey } from '../log/note.ts';
import { isOfLog, type Policy, parsePolicy, witnessesOf } from '../log/policy.ts';
import type { KnownReceipt } from '../log/receipt-text.ts';
import { isWrong, type Verdict, type VerdictWord, verdictsOf } from './verdicts.ts';
import { openByAnyKey, type TreeResult, verifyTree } from './verify-tree.ts';

/** What the auditor has. */
export interface Trusted {
  /** Verifier keys of the log. Its later logs may have another name, and the same key. */
  readonly keys: readonly string[];
  /** The note of a checkpoint that was kept. */
  readonly oldCheckpoint?: string | undefined;
  /** The text of a policy: which witnesses are needed. */
  readonly policy?: string | undefined;
  /** The names of the receipts that are accepted, as `erasure@4021`. */
  readonly accept: ReadonlySet<string>;
}

/** A finding about the whole file rather than about positions. */
export interface Finding {
  readonly isWrong: boolean;
  /** A sentence. */
  readonly text: string;
  /** Whether an operator is to read it though nothing is wrong. */
  readonly isRemark?: boolean;
}

export interface Verification {
  /** Nothing is wrong, and each receipt but the first sealing's is accepted. */
  readonly isRight: boolean;
  readonly findings: readonly Finding[];
  /** How many positions have which verdict. */
  readonly counts: ReadonlyMap<VerdictWord, number>;
  readonly receipts: readonly { readonly receipt: KnownReceipt; readonly isAccepted: boolean }[];
}

/**
 * Verifies a bundle, which is read twice: first its tree, then what its entries say. Each verdict is passed to `report`
 * in the order of positions; neighbours that are alike come as one. Throws a BundleFault for what is no whole bundle,
 * and a RangeError for what the auditor gave and is no key, checkpoint or policy.
 */
export async function verifyBundle(
  read: () => AsyncIterable<BundleLine>,
  trusted: Trusted,
  report: (verdict: Verdict) => void,
): Promise<Verification> {
  const policy = trusted.policy === undefined ? undefined : parsePolicy(trusted.policy);
  const old = trusted.oldCheckpoint === undefined ? undefined : openByAnyKey(trusted.oldCheckpoint, trusted.keys);
  if (typeof old === 'string') throw new RangeError(`the old checkpoint ${old}`);
  const tree = await verifyTree(read(), trusted.keys, old);
  const findings = [
    ...findingsOfCheckpoint(tree, trusted.keys, policy),
    ...tree.wrongTiles.map(([from, to]) => ({
      isWrong: true,
      text: `The hash that the log has of the positions ${from} to ${to} is not theirs; the positions are right.`,
    })),
    ...tree.strayReceipts.map((position) => ({
      isWrong: true,
      text: `A receipt says that it is at position ${position}, and the log has none there.`,
    })),
    ...tree.unknownReceipts.map((position) => ({
      isWrong: true,
      text: `The receipt at position ${position} says nothing that this version of Annals understands.`,
    })),
    ...findingsOfPart(tree),
    ...(old === undefined ? [] : findingsOfOld(tree, old)),
  ];
  const counts = new Map<VerdictWord, number>();
  const count = (verdict: Verdict): void => {
    counts.set(verdict.verdict, (counts.get(verdict.verdict) ?? 0) + verdict.to - verdict.from + 1);
    report(verdict);
  };
  let last: Verdict | undefined;
  for await (const verdict of verdictsOf(read(), tree)) {
    if (last !== undefined && isSame(last, verdict)) last = { ...last, to: verdict.to };
    else {
      if (last !== undefined) count(last);
      last = verdict;
    }
  }
  if (last !== undefined) count(last);
  const lost = old === undefined ? undefined : lostOf(tree, old);
  if (lost !== undefined) count(lost);
  const receipts = tree.receipts.all.map((receipt) => ({
    receipt,
    isAccepted: receipt === tree.receipts.firstSealing || trusted.accept.has(receipt.name),
  }));
  const isAnyWrong = findings.some((one) => one.isWrong) || [...counts.keys()].some((verdict) => isWrong({ verdict }));
  return { isRight: !isAnyWrong && receipts.every(({ isAccepted }) => isAccepted), findings, counts, receipts };
}

interface Old {
  readonly origin: string;
  readonly size: number;
}

function findingsOfCheckpoint(tree: TreeResult, keys: readonly string[], policy: Policy | undefined): Finding[] {
  const { checkpoint, size, isRight, receipts } = tree;
  if (typeof checkpoint === 'string') return [{ isWrong: true, text: `The checkpoint of the file ${checkpoint}.` }];
  const findings: Finding[] = [
    isRight
      ? { isWrong: false, text: `The checkpoint of ${checkpoint.origin} signs the positions up to ${size}.` }
      : {
          isWrong: true,
          text: `The positions up to ${size} are not those that the checkpoint of ${checkpoint.origin} signs.`,
        },
  ];
  const names = [checkpoint.origin, ...receipts.all.flatMap(({ earlierLog }) => earlierLog?.origin ?? [])];
  if (!keys.some((key) => names.includes(parseVerifierKey(key).name))) {
    const text = `The log of the file is ${checkpoint.origin}, and no receipt says that it continues the log of the key.`;
    findings.push({ isWrong: true, text });
  }
  if (policy === undefined) return findings;
  return [...findings, findingOfPolicy(checkpoint.note, policy)];
}

/** What a partial bundle cannot prove: nobody signs its header, which says what was requested. */
function findingsOfPart({ header: { from, to, q }, size }: TreeResult): Finding[] {
  const part = [
    ...(from > 1 || to < size ? [`the positions from ${from} to ${to}`] : []),
    ...(q === null ? [] : [`changes that match ${JSON.stringify(q)}`]),
  ];
  if (part.length === 0) return [];
  const text = `The file shows ${part.join(', and of these ')} alone. It does not prove that what it leaves out is there.`;
  return [{ isWrong: false, text }];
}

/** Whether the policy trusts the note of a checkpoint whose own signature was verified. */
export function findingOfPolicy(note: Note, policy: Policy): Finding {
  const seen = witnessesOf(note, policy);
  if (seen === 'wrong') return { isWrong: true, text: 'A cosignature is not for this checkpoint.' };
  if (!isOfLog(note, policy)) return { isWrong: true, text: 'The policy does not name the log of the checkpoint.' };
  const cosigned = [...seen].map(([name, at]) => `${name} at ${timeOf(at)}`);
  const isEnough = policy.isEnough(new Set(seen.keys()));
  const text = `Witnesses: ${cosigned.join(', ') || 'none'}${isEnough ? '' : ', which is less than the policy asks for'}.`;
  return { isWrong: !isEnough, text };
}

/** A witness may sign any number of seconds. */
function timeOf(seconds: number): string {
  return seconds <= 8.64e12 ? new Date(seconds * 1000).toISOString() : `${seconds} s`;
}

function findingsOfOld(tree: TreeResult, old: Old): Finding[] {
  const { checkpoint, isOldRight, size } = tree;
  const [kept, isKnown] = keptOf(tree, old);
  if (typeof checkpoint === 'string') return [];
  if (!isKnown) {
    return [
      {
        isWrong: true,
        text: `The old checkpoint is of ${old.origin}, and no receipt says that ${checkpoint.origin} continues it.`,
      },
    ];
  }
  if (isOldRight !== true && old.size > kept) {
    return [
      {
        isWrong: true,
        text: `The old checkpoint signs ${old.size} positions, of which ${kept} are here: nothing shows whether these are the same.`,
      },
    ];
  }
  if (isOldRight === false) {
    return [{ isWrong: true, text: `The positions up to ${old.size} are not those that the old checkpoint signs.` }];
  }
  return [
    {
      isWrong: false,
      text: `The positions up to ${Math.min(old.size, size)} are those that the old checkpoint signs.`,
    },
  ];
}

/** How many leaves of the log of an old checkpoint are in this one, and whether that is known. */
function keptOf({ checkpoint, receipts, size }: TreeResult, old: Old): [kept: number, isKnown: boolean] {
  if (typeof checkpoint === 'string' || checkpoint.origin === old.origin) return [size, true];
  // Logs may follow each other: what the last one took over of the first is the least of all.
  const earlier = receipts.all.flatMap(({ earlierLog }) => (earlierLog === undefined ? [] : [earlierLog]));
  const first = earlier.findIndex(({ origin }) => origin === old.origin);
  if (first === -1) return [0, false];
  return [Math.min(size, ...earlier.slice(first).map(({ kept }) => kept)), true];
}

function lostOf(tree: TreeResult, old: Old): Verdict | undefined {
  const [kept, isKnown] = keptOf(tree, old);
  if (!isKnown || tree.isOldRight === true || old.size <= kept) return undefined;
  return {
    from: kept + 1,
    to: old.size,
    verdict: 'LOST',
    reason: 'signed by the old checkpoint, and not here',
  };
}

function isSame(a: Verdict, b: Verdict): boolean {
  return (
    a.to + 1 === b.from &&
    a.verdict === b.verdict &&
    a.receipt === b.receipt &&
    a.reason === b.reason &&
    (a.fields ?? []).join('\n') === (b.fields ?? []).join('\n')
  );
}
