/** The bytes of standard base64 with its padding; undefined for any other text: each sequence of bytes has one text. */
export function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : undefined;
}
