/* Blocks by name: which message they are, what they begin with, how large they are. */
import { ask, withQuery } from '../../web/request';
import { nameOfEntry } from '../manifest/address';
import { opened } from '../manifest/holding';
import { isManaged, type Manifest } from '../manifest/manifest';
import type { PackedJson } from '../manifest/packing';
import { kindNames, kindTitles } from '../../web/kinds';
import { Previews } from '../manifest/previews.svelte';
import type { Props } from './diff';

export class Blocks {
  previews: Previews;

  private constructor(
    readonly asked: Props,
    readonly run: string,
    readonly manifest: Manifest,
  ) {
    this.previews = new Previews(asked.previews_url);
    this.previews.renew(run, manifest.entries);
  }

  static async of(asked: Props, run: string): Promise<Blocks> {
    const address = withQuery(asked.manifest_url, { run, packed: 'true' });
    return new Blocks(asked, run, opened(await ask<PackedJson>(address)));
  }

  /** Undefined until it has arrived. */
  line(i: number): string | undefined {
    void this.previews.arrived;
    return this.previews.line(i);
  }

  number(i: number): string {
    const message = this.manifest.entries.message[i];
    return message >= 0 ? `#${message}` : '';
  }

  /** How the run is called beside another. */
  get runName(): string {
    const { policy, label, origin } = this.manifest.run;
    return origin === 'recorded'
      ? isManaged(this.manifest)
        ? 'recorded'
        : label
      : (policy ?? label);
  }

  kind = (i: number) => kindNames[this.manifest.entries.kind[i]] ?? 'other';
  code = (i: number): string => kindTitles[this.kind(i)][0];
  tokens = (i: number): number => this.manifest.entries.shown[i] ?? 0;

  revisionAddress(number: number | null): string | null {
    if (!number || !this.asked.revision_url) return null;
    return this.asked.revision_url
      .replace('{run}', this.manifest.run.id)
      .replace('{number}', String(number));
  }

  /** The replay at a step with this block chosen. */
  address(i: number, step: number): string {
    return withQuery(`${this.asked.replay_url}steps/${step}/`, {
      run: this.run === 'recorded' && !isManaged(this.manifest) ? '' : this.run,
      m: nameOfEntry(this.manifest, i),
    });
  }
}
