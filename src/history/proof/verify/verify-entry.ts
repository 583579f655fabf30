import { commitmentOf, hashField } from '../encoding/commitment.ts';
import { countOfFields, type FieldLabel, labelsOf } from '../encoding/fields.ts';
import { saltsOf } from '../encoding/salts.ts';
import type { BundleEntry, BundleField } from './lines.ts';

/** What a bundle hides of an entry without a receipt: it could tell more than what is shown. */
const hiddenAtWill: readonly FieldLabel[] = ['identity', 'context'];

/** The fields of an entry that are not shown, by the names of docs/proof.md; `'changed'` where the entry is not the committed one. */
export function hiddenFields(entry: BundleEntry): readonly string[] | 'changed' {
  const { related, paths, fields, cover, commitment } = entry;
  const count = countOfFields({ related, paths });
  if (fields.length !== count) return 'changed';
  const labels = labelsOf({ related, paths });
  const shown = fields.map((field) => !isHidden(field));
  let salts: (Buffer | null)[];
  try {
    salts = saltsOf({ cover, shown }, count);
  } catch (error) {
    if (error instanceof RangeError) return 'changed';
    throw error;
  }
  const hashes = fields.map((field, index) => {
    if (isHidden(field)) return field.hash;
    const [label, salt] = [labels[index], salts[index]];
    return label === undefined || !salt ? undefined : hashField(label, field, salt);
  });
  const whole = hashes.filter((hash) => hash !== undefined);
  if (whole.length !== count || !commitmentOf({ related, paths }, whole).equals(commitment)) return 'changed';
  return labels.flatMap((label, index) =>
    shown[index] === true || hiddenAtWill.includes(label) ? [] : [nameOf(label, index, entry)],
  );
}

function isHidden(field: BundleField | undefined): field is { readonly hash: Buffer } {
  return typeof field === 'object' && field !== null;
}

/** `before price.amount`: a side of a path has the name of its path, where that is shown. */
function nameOf(label: FieldLabel, index: number, { fields }: BundleEntry): string {
  const name = label === 'before' ? fields[index - 1] : label === 'after' ? fields[index - 2] : undefined;
  return typeof name === 'string' ? `${label} ${name}` : label;
}
