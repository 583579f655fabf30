import { createHash } from 'node:crypto';
import { AwsV4Signer } from 'aws4fetch';

export interface Bucket {
  /** Default: Amazon's endpoint of the region. */
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

/** Object metadata with the SHA-256 of the uncompressed text, in hexadecimal digits. */
export const hashHeader = 'x-amz-meta-annals-sha256';

/** The path-style URL of an object: every S3 server supports it, and the bucket does not become part of the host. */
export function addressOf({ endpoint, region, bucket }: Bucket, key: string): URL {
  const base = (endpoint ?? `https://s3.${region}.amazonaws.com`).replace(/\/+$/, '');
  return new URL(`${base}/${bucket}/${key.split('/').map(encoded).join('/')}`);
}

/** Object metadata with the number of changes. */
export const changesHeader = 'x-amz-meta-annals-changes';

/** A request for an object with a Signature Version 4 that covers the body and all headers. */
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

/** Percent-encodes per RFC 3986, as the signature does. */
function encoded(segment: string): string {
  return encodeURIComponent(segment).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}
