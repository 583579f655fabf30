import { createHash } from 'node:crypto';
import { AwsV4Signer } from 'aws4fetch';

/** Where a bucket is, and who writes to it. */
export interface Bucket {
  /** Left out: Amazon's of the region. */
  readonly endpoint?: string;
  readonly region: string;
  readonly bucket: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export interface SignedRequest {
  readonly method: 'HEAD' | 'PUT';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Object metadata with the SHA-256 of the unpacked text, in hexadecimal digits. */
export const hashHeader = 'x-amz-meta-annals-sha256';

/** The address of an object, path-style: every S3 server knows it, and no name of a bucket becomes a part of a host's name. */
export function addressOf({ endpoint, region, bucket }: Bucket, key: string): URL {
  const base = (endpoint ?? `https://s3.${region}.amazonaws.com`).replace(/\/+$/, '');
  return new URL(`${base}/${bucket}/${key.split('/').map(encoded).join('/')}`);
}

/** Object metadata with the number of changes. */
export const changesHeader = 'x-amz-meta-annals-changes';

/** A request for an object, with a signature of version 4 that covers the body and every header that is given here. */
export async function signedRequest(
  bucket: Bucket,
  {
    method,
    key,
    headers,
    body,
  }: { method: 'HEAD' | 'PUT'; key: string; headers: Record<string, string>; body: Buffer },
  now: number,
): Promise<SignedRequest> {
  const signer = new AwsV4Signer({
    method,
    url: addressOf(bucket, key).href,
    headers: { ...headers, 'x-amz-content-sha256': createHash('sha256').update(body).digest('hex') },
    accessKeyId: bucket.accessKeyId,
    secretAccessKey: bucket.secretAccessKey,
    service: 's3',
    region: bucket.region,
    datetime: new Date(now).toISOString().replace(/[:-]|\.\d{3}/g, ''),
  });
  const signed = await signer.sign();
  return { method, url: signed.url.href, headers: Object.fromEntries(signed.headers) };
}

/** Percent-encoded as the signature has it (RFC 3986), so that the address and its signature say the same. */
function encoded(segment: string): string {
  return encodeURIComponent(segment).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
}
