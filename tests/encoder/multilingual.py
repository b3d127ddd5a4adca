"""Everyday sentences in many scripts, and strings that tokenizers trip over."""

from __future__ import annotations

SENTENCES = {
    "eng_Latn": [
        "The cat sat on the mat and looked out of the window.",
        "Can you tell me where the nearest railway station is?",
        "Please save your changes before you close the window.",
        "She had never seen so many books in one room.",
        "It rained all day, so we stayed at home and played cards.",
    ],
    "deu_Latn": [
        "Die Katze saß auf der Matte und sah aus dem Fenster.",
        "Können Sie mir sagen, wo der nächste Bahnhof ist?",
        "Bitte speichern Sie Ihre Änderungen, bevor Sie das Fenster schließen.",
        "Sie hatte noch nie so viele Bücher in einem Zimmer gesehen.",
        "Es regnete den ganzen Tag, also blieben wir zu Hause und spielten Karten.",
    ],
    "fra_Latn": [
        "Le chat était assis sur le tapis et regardait par la fenêtre.",
        "Pouvez-vous me dire où se trouve la gare la plus proche ?",
        "Veuillez enregistrer vos modifications avant de fermer la fenêtre.",
    ],
    "tur_Latn": [
        "Kedi minderin üzerinde oturdu ve pencereden dışarı baktı.",
        "İSTANBUL'da ılık bir akşamdı.",
    ],
    "vie_Latn": [
        "Con mèo ngồi trên tấm thảm và nhìn ra ngoài cửa sổ.",
        "Trời mưa cả ngày nên chúng tôi ở nhà.",
    ],
    "rus_Cyrl": [
        "Кошка сидела на коврике и смотрела в окно.",
        "Скажите, пожалуйста, где ближайший вокзал?",
    ],
    "ell_Grek": ["Η γάτα κάθισε στο χαλί και κοίταξε έξω από το παράθυρο.", "Πού είναι ο σταθμός;"],
    "heb_Hebr": ["החתול ישב על השטיח והביט מהחלון.", "ירד גשם כל היום."],
    "arb_Arab": ["جلست القطة على السجادة ونظرت من النافذة.", "أين أقرب محطة قطار؟"],
    "hin_Deva": ["बिल्ली चटाई पर बैठी और खिड़की से बाहर देखने लगी।", "निकटतम रेलवे स्टेशन कहाँ है?"],
    "ben_Beng": ["বিড়ালটি মাদুরে বসে জানালা দিয়ে বাইরে তাকাল।"],
    "tam_Taml": ["பூனை பாயில் அமர்ந்து ஜன்னலுக்கு வெளியே பார்த்தது."],
    "tha_Thai": ["แมวนั่งบนเสื่อและมองออกไปนอกหน้าต่าง", "สถานีรถไฟที่ใกล้ที่สุดอยู่ที่ไหน"],
    "kat_Geor": ["კატა ხალიჩაზე იჯდა და ფანჯრიდან იყურებოდა."],
    "hye_Armn": ["Կատուն նստեց գորգի վրա և նայեց պատուհանից դուրս։"],
    "kor_Hang": ["고양이가 매트 위에 앉아 창밖을 바라보았다.", "가장 가까운 기차역이 어디인가요?"],
    "jpn_Jpan": ["猫はマットの上に座って窓の外を見た。", "一番近い駅はどこですか。"],
    "zho_Hans": ["猫坐在垫子上看着窗外。", "请问最近的火车站在哪里？"],
    "zho_Hant": ["貓坐在墊子上看著窗外。"],
    "amh_Ethi": ["ድመቷ ምንጣፉ ላይ ተቀምጣ በመስኮት ወደ ውጭ ተመለከተች።"],
}
LINES = [(language, text) for language, texts in SENTENCES.items() for text in texts]
TEXTS = [text for _, text in LINES]

AWKWARD = [
    "",
    " ",
    "  two  spaces   and more ",
    "tab\tand\nnewline\r\n",
    "no-break\u00a0space, ideographic\u3000space, thin\u2009space",
    "zero\u200bwidth\u200d joiner and soft\u00adhyphen, mark\ufeff",
    "hahahahahahahaha aaaaaaaaaaaaaaa ........ !!!!!!!",
    "ﬁne ligatures, ½ ⅓, ① ②, ｆｕｌｌ width, ㌔ ㎏, ℌ",
    "cafe\u0301 and caf\u00e9, A\u030a and \u00c5, \u1100\u1161\u11a8 and \uac01",
    "किताब and \u0915\u093c \u0958, ក្រុម, শুভ\u200cকামনা",
    "STRASSE Straße ẞ İstanbul ΣΊΣΥΦΟΣ Ǆ",
    "emoji 👩‍👩‍👧‍👦 👍🏽 🇩🇪 and rare 𐍈 𠜎 ꙮ",
    "<2de> <2en> <s> </s> [CLS] ▁ ▁▁ <0x41>",
    "http://example.org/a?b=c&d=%20e#f user@example.org",
    "\u0000 nul and \u0007 bell",
    "a" * 3000,
]
