import { Members, refused } from '../formats/members.ts';

/** What the contents of a request have beside text. */
export interface Found {
  images: number;
  /** Of images, files and audio. */
  dataBytes: number;
  files: number;
}

/** Content parts by type, with the members that the shared token takes. */
export type PartTypes = Readonly<Record<string, readonly string[]>>;

/** Reads the content parts of messages and items. */
export class Contents {
  readonly isShared: boolean;
  readonly #types: PartTypes;
  readonly #isServer: boolean;
  readonly #found: Found;

  constructor(types: PartTypes, options: { isShared: boolean; isServer: boolean; found: Found }) {
    this.#types = types;
    this.isShared = options.isShared;
    this.#isServer = options.isServer;
    this.#found = options.found;
  }

  /** Throws where a part is of an unknown type, or names what has to be fetched. */
  read(holder: Members, name: string): void {
    const content = holder.get(name);
    if (content === undefined || typeof content === 'string') return;
    if (!Array.isArray(content)) throw refused(holder.at(name), 'must be a string or a list of parts');
    for (const [place, value] of content.entries()) this.#part(new Members(value, holder.at(`${name}.${place}`)));
  }

  #part(part: Members): void {
    const type = part.neededText('type');
    const known = Object.hasOwn(this.#types, type) ? this.#types[type] : undefined;
    const isOfServers = this.#isServer && (type === 'video_url' || type === 'audio_url');
    if (known === undefined && !isOfServers) throw refused(part.at('type'), 'is not a known type of a content part');
    if (this.isShared && known !== undefined) part.refuseOthers(known);
    // Some servers read what is there, whatever the type.
    for (const [name, types] of Object.entries(typesOfData)) {
      if (part.get(name) !== undefined && !types.includes(type))
        throw refused(part.at(name), 'is of another type of part');
    }
    switch (type) {
      case 'image_url':
      case 'input_image':
        this.#image(part);
        break;
      case 'video_url':
      case 'audio_url':
        this.#found.files += 1;
        this.#data(part, type, 'url');
        break;
      case 'input_audio':
        this.#found.files += 1;
        this.#data(part, type, 'data');
        break;
      case 'file':
        this.#found.files += 1;
        this.#data(part, type, 'file_data');
        break;
      case 'input_file':
        this.#found.files += 1;
        this.#take(part, 'file_data', dataOrBase64);
        break;
    }
  }

  #image(part: Members): void {
    const image = part.get('image_url');
    this.#found.images += 1;
    if (typeof image === 'string' || part.get('type') === 'input_image') {
      if (image === undefined) throw refused(part.at('image_url'), 'is required');
      this.#take(part, 'image_url', imageUrl);
      return;
    }
    const named = part.object('image_url');
    if (named?.get('url') === undefined) throw refused(part.at('image_url.url'), 'is required');
    if (this.isShared) named.refuseOthers(['url', 'detail']);
    this.#take(named, 'url', imageUrl);
  }

  /** The member of an object in a part, or the text in its place. */
  #data(part: Members, name: string, inner: string): void {
    if (typeof part.get(name) === 'string') this.#take(part, name, dataOrBase64);
    else this.#take(part.object(name) ?? new Members({}, part.at(name)), inner, dataOrBase64);
  }

  #take(holder: Members, name: string, { pattern, must }: { pattern: RegExp; must: string }): void {
    const text = holder.neededText(name);
    if (!pattern.test(text)) throw refused(holder.at(name), must);
    this.#found.dataBytes += text.length;
  }
}

/** The types of parts that have data, by the member that has it. */
const typesOfData: Readonly<Record<string, readonly string[]>> = {
  image_url: ['image_url', 'input_image'],
  video_url: ['video_url'],
  audio_url: ['audio_url'],
  input_audio: ['input_audio'],
  file: ['file'],
  file_data: ['input_file'],
  url: [],
};

const imageUrl = { pattern: /^data:image\//, must: 'must be a data: URL of an image: the service fetches none' };
const dataOrBase64 = { pattern: /^(?:data:|[\w+/=\s-]*$)/, must: 'must be a data: URL or base64: nothing is fetched' };
