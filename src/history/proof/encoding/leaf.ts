/** The text of the leaf of an entry. */
export function entryLeaf(position: number, commitment: Buffer): string {
  return `annals-leaf-v1\n${position}\n${commitment.toString('base64')}\n`;
}

/** The text of the leaf of a receipt, which is JSON in one line. */
export function receiptLeaf(position: number, receipt: string): string {
  return `annals-receipt-v1\n${position}\n${receipt}\n`;
}

/** The text of the leaf of a position whose entry was gone before it was sealed. */
export function noneLeaf(position: number): string {
  return `annals-none-v1\n${position}\n`;
}
