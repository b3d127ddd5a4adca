"""Words by which a full stop is judged: abbreviations, and words that start sentences.

Languages are three letters of ISO 639-3. An abbreviation is written without its last full stop, in
lower case, and without spaces: ``z.b`` also represents "z. B.".
"""

from __future__ import annotations

import functools
from typing import NamedTuple

SAME_AS = {
    "": "eng",
    "nno": "nob",
    "bos": "hrv",
    "asm": "ben",
    "prs": "pes",
    "fas": "pes",
    "acm": "arb",
    "apc": "arb",
    "ara": "arb",
    "ars": "arb",
    "ary": "arb",
    "arz": "arb",
    "awa": "hin",
    "bho": "hin",
    "mag": "hin",
    "mai": "hin",
    "glg": "por",
    "afr": "nld",
    "ltz": "deu",
    "fao": "dan",
    "msa": "zsm",
    "lav": "lvs",
    "aze": "azj",
    "nep": "npi",
    "dzo": "bod",
}
"""Languages that use the words of another language."""
CAPITALIZING = ("eng", "deu")
"""Languages in which many words inside of a sentence start with a capital letter."""
TITLES = {
    # In every language.
    "": "dr prof mr mrs ms st",
    "eng": "rev hon messrs sgt maj cpl gov sen gen col lt capt pres rep supt vs e.g i.e cf viz"
    " approx mt ft dept univ",
    "deu": "hr fr frl dipl ing med phil jur nat rer hc fa vgl bzw ggf evtl zzgl inkl exkl sog d.h"
    " z.b z.t i.d.r s.o s.u o.ä ca geb gest hrsg allg insb insbes bspw resp u.u i.a",
    "fra": "m mm mme mmes mlle mlles me mgr boul bd ave p.ex env av apr j.-c éd dir cf c.-à-d",
    "spa": "sr sra sres sras srta d dña dra dres lic ing ud uds vd av avda pza gral cap p.ej"
    " aprox prov dpto ee ff",
    "por": "sr sra srs sras dra drs dras profa exmo exma av p.ex por.ex aprox ing eng arq",
    "cat": "sr sra srs sres dra c av pl p.ex aprox ctra",
    "ita": "sig sigg sig.ra sig.na dott dott.ssa ing avv arch geom rag on mons sen gen es p.es"
    " ca cfr v ecc.mo",
    "ron": "dl d-l dna d-na dlui acad ing str nr bl sc jud com cf",
    "nld": "dhr mevr mw drs ir ing mr bijv d.w.z m.a.w o.a m.n i.p.v t.a.v t.o.v z.g.a.n ca"
    " mgr bv resp evt",
    "swe": "t.ex bl.a d.v.s dvs ca fr.o.m f.n hr st t.o.m p.g.a s.k resp ev jfr",
    "dan": "f.eks bl.a dvs d.v.s ca hr fr pga p.g.a f.x jf evt inkl ekskl hhv",
    "nob": "f.eks bl.a dvs d.v.s ca hr fr pga p.g.a jf evt inkl hhv",
    "isl": "t.d þ.e m.a u.þ.b þ.á.m sbr hr frú",
    "fin": "esim mm ns ts ks n hra rva t.s",
    "est": "nt nn s.t st hr pr ca vt",
    "lvs": "piem t.i t.s sk plkst apm",
    "lit": "pvz t.y vad žr plg gerb val angl vok rus lot pranc mln mlrd tūkst ",
    "pol": "np tzn tzw m.in ul al pl os ks im św bł bp abp gen płk ppłk kpt kpr"
    " sierż adm woj pow gm mjr inż mgr hab dot por zob red lic",
    "ces": "např tzn tzv tj ul nám sv ing mgr bc judr mudr phdr rndr arch gen plk mj resp popř",
    "slk": "napr tzv t.j tj ul nám sv ing mgr bc judr mudr resp príp",
    "slv": "npr t.i tj oz ga g dr mag ul sv inž",
    "hrv": "npr tzv tj ul sv ing mr gosp gđa dipl mag",
    "srp": "нпр тзв тј ул св инж др проф г npr tzv tj ul sv",
    "mkd": "ул на.пр т.е т.н д-р проф г г-ѓа св",
    "hun": "pl ill ún ifj id özv dr kb ua vö",
    "bul": "ул бул пл г-н г-жа д-р проф св напр т.нар т.е гр инж",
    "rus": "ул пл наб им проф акад св т.е т.к т.н г-н г-жа напр ред сост см ср тов гр"
    " обл р-н пос дер исп зам ген доц инж",
    "ukr": "вул просп пл пров ім проф акад св т.зв див пор напр м смт обл гр ред доц пп",
    "bel": "вул пл праф акад св гл напр г.зн т.зв",
    "ell": "κ κκ κα δρ καθ π.χ βλ πρβλ αγ οδ λεωφ δηλ τηλ",
    "tur": "doç av sn yrd öğr gör uzm müh mah cad sok blv bkz örn krş alb bşk çev haz",
    "azj": "məs prof dos küç akad",
    "kaz": "т.б проф акад көш",
    "vie": "tp ths ts pgs gs ks bs tx q p đ mr ls",
    "ind": "bpk sdr jl jln dr drs ir prof kol kel kec kab hj tn ny a.n d.a tgl yth",
    "zsm": "en pn jln kg tn hj dato sdr dr prof tmn",
    "tgl": "gng g bb gob sen kgg atty engr sta sto",
    "cym": "mr mrs yr e.e h.y",
    "epo": "ekz t.e k.a s-ro s-ino d-ro prof ktp k.t.p",
    "hin": "डॉ डा प्रो श्री श्रीमती सुश्री कु पं मो रु स्व मि",
    "mar": "डॉ प्रा श्री कु रु पं मे कै",
    "npi": "डा डॉ श्री प्रा रु",
    "ben": "ড ডা ডাঃ মো মোঃ প্রফেসর অধ্যা মি মিসেস",
    "pan": "ਡਾ ਪ੍ਰੋ ਸ੍ਰੀ ਸ਼੍ਰੀ ਸ",
    "guj": "ડૉ ડો પ્રો શ્રી રૂ",
    "tam": "திரு திருமதி செல்வி டாக் பேரா ரூ",
    "tel": "డా ప్రొ శ్రీ శ్రీమతి రూ",
    "kan": "ಡಾ ಪ್ರೊ ಶ್ರೀ ಶ್ರೀಮತಿ ರೂ",
    "mal": "ഡോ പ്രൊ ശ്രീ ശ്രീമതി രൂ",
    "sin": "ආචාර්ය ",
    "lao": "ດຣ ປອ ສຈ",
    "kat": "ქ წ წწ ს ე.წ ე.ი ბ.ნ",
    "hye": "պրոֆ դոկ",
}
"""Abbreviations that no sentence ends with: titles, and words such as "for example"."""
NUMBERED = {
    "": "no nr art p pp fig vol tel",
    "eng": "nos figs sec secs ch chap eq eqs vols ed eds para pt al jan feb mar apr jun jul aug sep"
    " sept oct nov dec",
    "deu": "max min s abb kap abs bd bde tab ziff anm aufl str jan feb apr aug sept okt nov"
    " dez lfd",
    "fra": "chap n t tab janv févr juill sept oct nov déc n° §",
    "spa": "pág págs núm núms cap caps n.º vol tab s.n",
    "por": "pág págs cap n.º nº núm tab cx",
    "cat": "pàg núm cap vol tab",
    "ita": "pag pagg cap num n tab",
    "ron": "pag cap lit alin tab etj ap et",
    "nld": "blz hfdst afb tab jg",
    "swe": "kl s sid kap bd tab",
    "dan": "kl s kap bd tab stk jan feb aug sept okt nov dec",
    "nob": "kl s kap bd tab",
    "isl": "kl bls gr mgr",
    "fin": "s ks luku nro puh klo",
    "est": "lk ptk joon tab tn",
    "lvs": "lpp att tab",
    "lit": "psl pav lent g",
    "pol": "str s rys tab rozdz ust pkt poz t",
    "ces": "str s obr č tab kap odst čl sv",
    "slk": "str s obr č tab kap ods čl",
    "slv": "str št sl tab pogl čl",
    "hrv": "str br sl tab pogl čl st",
    "srp": "стр бр сл таб погл чл str br sl",
    "mkd": "стр бр сл таб чл",
    "hun": "o old sz fej tábl",
    "bul": "стр с фиг гл чл ал бр №",
    "rus": "стр с рис табл гл ст п пп д кв корп стр оф тел гл разд т № кн",
    "ukr": "с стор рис табл гл ст п буд кв тел розд т №",
    "bel": "с рыс табл гл арт п дом",
    "ell": "σελ σ αρ εικ κεφ τόμ άρθρ τηλ",
    "tur": "s sf no şek tab böl md",
    "azj": "səh s şək mad",
    "vie": "tr số hình đ",
    "ind": "hlm hal bab gbr no",
    "zsm": "hlm ms bab no",
    "arb": "ص ج",
    "pes": "ص ج",
    "kat": "გვ ტ ნახ",
}
"""Abbreviations that a sentence ends with, unless a number follows."""
WEAK = {
    "": "etc",
    "eng": "inc ltd co corp jr sr esq bros a.m p.m u.s u.k u.s.a u.n e.u ph.d b.a m.a b.c a.d d.c"
    " ave blvd rd",
    "deu": "usw usf u.a u.ä u.v.m u.v.a o.g n.chr v.chr jh jhd nchr co kg gmbh",
    "fra": "etc cie",
    "spa": "etc ee.uu uu cía a.c d.c",
    "por": "etc ltda cia",
    "ita": "ecc",
    "ron": "etc ș.a ș.a.m.d",
    "nld": "enz e.d n.v b.v",
    "swe": "osv m.m m.fl etc",
    "dan": "osv m.m m.fl mv",
    "nob": "osv m.m m.fl mv",
    "isl": "o.s.frv o.fl",
    "fin": "jne ym tms",
    "est": "jne jms jt",
    "lvs": "utt u.c u.tml",
    "lit": "t.t ir.t.t pan kt",
    "pol": "itd itp",
    "ces": "atd apod aj",
    "slk": "atď apod a.i",
    "slv": "itd ipd",
    "hrv": "itd sl i.sl",
    "hun": "stb",
    "bul": "т.н и.др др т.н.т",
    "rus": "т.д т.п др пр н.э",
    "ukr": "т.д т.п ін н.е",
    "bel": "г.д інш н.э",
    "ell": "κ.λπ κλπ κ.ά κ.τ.λ κτλ π.μ μ.μ",
    "tur": "vb vs",
    "azj": "s və.s",
    "vie": "v.v",
    "ind": "dll dsb dst dkk",
    "zsm": "dll dsb bhd",
    "kat": "ა.შ და.ა.შ",
    "hye": "և.այլն",
}
"""Abbreviations that a sentence may end with."""
UNITS = {
    "": "km m cm mm kg g h",
    "eng": "ft lb lbs oz mi hr hrs min sec yr yrs",
    "pol": "r w zł gr tys mln mld",
    "rus": "г гг в вв руб коп тыс млн млрд км м см кг",
    "ukr": "р рр ст грн коп тис млн млрд",
    "bel": "г гг ст руб тыс млн",
    "bul": "г в лв ст",
    "mkd": "г век ден",
    "srp": "г год дин",
    "kaz": "ж жж ғ тг",
    "swe": "kr tkr",
    "dan": "kr mio mia",
    "nob": "kr mill mrd",
    "isl": "kr m.kr",
    "deu": "mio mrd std",
    "nld": "mln mld",
    "ces": "kč tis mil mld r",
    "slk": "tis mil mld r",
    "lvs": "g",
    "est": "a kr",
    "lit": "d",
}
"""Abbreviations after a number; they end a sentence if a capital letter follows."""
STARTERS = {
    "eng": "the a an he she it they we you i this that these those there here his her their our my"
    " its in on at by for from with to as and but or so yet if when while after before since"
    " although because however then now everyone everybody someone both all some many most"
    " no not one what who why how where which is are was were do does did can be let please"
    " another other each such even still",
    "deu": "der die das den dem des ein eine einen einem einer er sie es wir ihr ich du man im in"
    " am an auf aus bei mit nach seit von vor zu zum zur für und aber oder doch denn wenn als wie"
    " wer was wo wann warum dies dieser diese dieses hier dort da so nun dann danach auch noch"
    " nur nicht kein keine sein seine seinen alle viele einige jeder jede beide später heute",
    "fra": "le la les l un une il elle ils elles on nous vous je tu ce cet cette ces c son sa ses"
    " leur leurs dans en à au aux pour par avec mais et ou donc si quand puis après avant"
    " cependant y est-ce qui que où comment pourquoi",
    "spa": "el la los las un una él ella ellos se su sus en a al por para con pero y o si cuando"
    " después antes sin este esta esto es no qué quién cómo dónde nadie todos",
    "por": "o a os as um uma ele ela eles elas se seu sua em no na por para com mas e ou quando"
    " depois antes este esta isto é não que quem como onde ninguém todos",
    "ita": "il lo la i gli le un una egli lei lui loro si suo sua in nel a al per con ma e o se"
    " quando dopo prima questo questa è non che chi come dove nessuno tutti",
    "nld": "de het een hij zij ze wij we ik je u dit dat deze die in op aan bij met van voor naar"
    " en maar of als toen daarna nu hier daar er niet geen wat wie waar waarom hoe",
    "swe": "den det de en ett han hon vi jag du ni i på av med till för och men eller om när"
    " sedan nu här där inte ingen vad vem var varför hur",
    "dan": "den det de en et han hun vi jeg du i på af med til for og men eller hvis når så nu her"
    " der ikke ingen hvad hvem hvor hvorfor hvordan",
    "nob": "den det de en et han hun vi jeg du i på av med til for og men eller hvis når så nå her"
    " der ikke ingen hva hvem hvor hvorfor hvordan",
    "rus": "он она оно они мы я ты вы это этот эта эти в на с к по за из от для и а но или если"
    " когда потом затем после там здесь тут не нет что кто где как почему все его её их у о при",
    "ukr": "він вона воно вони ми я ти ви це цей ця ці в у на з до по за із від для і й а але або"
    " якщо коли потім після там тут не ні що хто де як чому всі його її їх",
    "pol": "on ona ono oni my ja ty to ten ta te w na z do po za od dla i a ale lub jeśli gdy"
    " potem tam tu nie co kto gdzie jak dlaczego wszyscy jego jej ich",
    "ces": "on ona ono oni my já ty to ten ta ti v na s do po za od pro i a ale nebo když potom"
    " tam tu ne co kdo kde jak proč všichni jeho její",
}
"""Words that start sentences and are not names: after an initial, they start a new sentence."""


class Words(NamedTuple):
    """Words of a language and those common to all languages, a set for each table above."""

    titles: frozenset[str]
    numbered: frozenset[str]
    weak: frozenset[str]
    units: frozenset[str]
    starters: frozenset[str]


@functools.cache
def words_of_language(code: str) -> Words:
    """Return the words of a language by its code of three letters; an empty code means English."""
    own = SAME_AS.get(code, code)
    tables = (TITLES, NUMBERED, WEAK, UNITS, STARTERS)
    return Words(
        *(frozenset(f"{table.get('', '')} {table.get(own, '')}".split()) for table in tables)
    )
