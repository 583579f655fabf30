/** Shorter content is not worth the work. */
const minBytes = 1_024;

/** The content, compressed if it is long enough. */
export async function gzipped(
  content: Uint8Array<ArrayBuffer>,
): Promise<{ content: Uint8Array<ArrayBuffer>; encoding: 'gzip' | undefined }> {
  if (content.length < minBytes) return { content, encoding: undefined };
  const packed = new Blob([content]).stream().pipeThrough(new CompressionStream('gzip'));
  return { content: new Uint8Array(await new Response(packed).arrayBuffer()), encoding: 'gzip' };
}
